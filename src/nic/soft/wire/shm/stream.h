// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/disconnection.h"
#include "nic/soft/wire/shm/incoming_writes.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/local_pages.h"
#include "nic/soft/wire/shm/message_receiver.h"
#include "nic/soft/wire/shm/message_sender.h"
#include "nic/soft/wire/shm/negotiation.h"
#include "nic/soft/wire/shm/rdma_requester.h"
#include "nic/soft/wire/shm/read_responder.h"
#include "nic/soft/wire/shm/rendezvous_receiver.h"
#include "nic/soft/wire/shm/rendezvous_sender.h"

namespace anydat::nic::soft::shm {

class Fabric;

// One connection over a link: where what arrives goes, and whose turn it is when there is room again. How it comes
// about is in Negotiation, how it ends in Disconnection. Messages go out by MessageSender and come in by
// MessageReceiver, large ones by RendezvousSender and RendezvousReceiver. RDMA of this side is in RdmaRequester; what
// this side carries out of the peer's, in IncomingWrites and ReadResponder.
class ShmStream final : public Stream {
 public:
  ShmStream(Fabric& fabric, SoftQueuePair& queue_pair);
  ~ShmStream() override;

  std::uint32_t name() const { return name_; }  // what the peer calls this end
  const std::shared_ptr<Link>& link() const { return link_; }
  void attach(std::shared_ptr<Link> link);  // may throw std::bad_alloc, and has done nothing then
  void detach();                            // from a link by which nothing has come about
  void set_remote(std::uint32_t remote, const RdmaTerms& terms);

  // Stream
  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) override;
  bool send_again(const SingleSend& send) override;
  bool put_again(const SingleRdma& request) override;
  std::size_t send_row(const SendRow& row) override;
  void resume_receiving() override;
  bool lets_go_of(std::uint32_t key) override;
  const char* wire() const override { return "shm"; }
  bool holds_messages() const override {
    return receiver_.has_backlog() || rendezvous_receiver_.any() || writes_.holds();
  }
  bool awaits_memory_for_backlog() const override { return writes_.holds_messages(); }
  bool region_removed() override;
  bool let_go() override { return disconnection_.let_go(); }
  void close(CloseReason reason) override { disconnection_.close(reason); }

  // For the link and the fabric.
  bool arrived(const CellView& view);  // false: malformed, as are the others
  // The same of a small message if it is as nearly all are (MessageReceiver).
  template <typename Last>
  [[gnu::always_inline]] bool arrived_straight(const CellView& view, Last&& last) {
    return connected() && !closed_ && !writes_.holds() && receiver_.arrived_straight(view, last);
  }
  bool piece_arrived(const CellView& view, const std::byte* bytes);
  bool take_turn();  // goes on with what waited for room or for its turn; true if bytes moved

  // ---- its parts
  Negotiation& negotiation() { return negotiation_; }
  LocalPages& pages() { return pages_; }
  IncomingWrites& writes() { return writes_; }
  ReadResponder& responder() { return responder_; }
  Disconnection& disconnection() { return disconnection_; }
  MessageReceiver& receiver() { return receiver_; }
  RendezvousReceiver& rendezvous_receiver() { return rendezvous_receiver_; }
  RdmaRequester& rdma() { return rdma_; }
  MessageSender& sender() { return sender_; }
  RendezvousSender& rendezvous_sender() { return rendezvous_sender_; }

  // ---- for its parts
  Fabric& fabric() { return fabric_; }
  SoftQueuePair& queue_pair() { return queue_pair_; }
  std::uint32_t remote() const { return remote_; }  // what the peer is called in what is sent to it
  bool over() const { return closed_; }             // nothing that arrives counts any more
  void set_over() { closed_ = true; }
  bool connected() const {
    const ConnectionState state = queue_pair_.state();
    return state == ConnectionState::connected || state == ConnectionState::draining;
  }
  // What has come for it, in its turn; false: malformed.
  bool arrived_in(ConnectionState state, bool connected, const CellView& view);

 private:
  friend class LinkSender;
  friend class LinkUsers;

  Fabric& fabric_;
  SoftQueuePair& queue_pair_;
  std::shared_ptr<Link> link_;
  std::size_t link_index_ = 0;  // for the users of the link
  LinkSender::Turn turn_{*this};
  std::uint32_t name_ = 0;
  std::uint32_t remote_ = 0;
  bool closed_ = false;
  Negotiation negotiation_{*this};
  LocalPages pages_{*this};

  // The sending side: what posts write, with the queue pair's send lock; what the peer answers, with the engine.
  MessageSender sender_{*this};
  RdmaRequester rdma_{*this};
  RendezvousSender rendezvous_sender_{*this};

  // The receiving side, with the engine.
  MessageReceiver receiver_{*this};
  RendezvousReceiver rendezvous_receiver_{*this};
  IncomingWrites writes_{*this};
  ReadResponder responder_{*this};
  Disconnection disconnection_{*this};
};

}  // namespace anydat::nic::soft::shm
