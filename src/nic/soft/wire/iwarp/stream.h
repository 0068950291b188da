// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/hidden_order.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/buffer_wait.h"
#include "nic/soft/wire/iwarp/disconnection.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/message_receiver.h"
#include "nic/soft/wire/iwarp/negotiation.h"
#include "nic/soft/wire/iwarp/outgoing_half.h"
#include "nic/soft/wire/iwarp/placement.h"
#include "nic/soft/wire/iwarp/read_responder.h"
#include "nic/soft/wire/iwarp/reading_turn.h"
#include "nic/soft/wire/iwarp/requester.h"
#include "nic/soft/wire/iwarp/segment_receiver.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::iwarp {

// One connection over TCP: its socket, what is read from it, and its turns. How it comes about is in Negotiation, how
// it ends in Disconnection. Requests and their answers are in Requester, what the peer asks for is in ReadResponder,
// and both share OutgoingHalf. SegmentReceiver makes segments of what is read and gives each to whom it is for;
// Placement has their payload, and MessageReceiver the messages, of which BufferWait keeps those that have no buffer
// yet.
//
// A message that finds no receive buffer stops the reading. If that lasts, messages are taken in and kept up to a
// bound, so that Writes and answers to Reads behind them pass.
class TcpStream final : public Stream {
 public:
  TcpStream(Fabric& fabric, SoftQueuePair& queue_pair);
  ~TcpStream() override;

  // Stream
  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) override {
    return requester_.send(number, message, progress);
  }
  bool send_again(const SingleSend& send) override { return requester_.send_again(send); }
  std::size_t send_row(const SendRow& row) override { return requester_.send_row(row); }
  void resume_receiving() override { waiting_.resume(); }
  const char* wire() const override { return "tcp"; }
  bool holds_messages() const override { return waiting_.any(); }
  bool awaits_memory_for_backlog() const override {
    return placement_.awaits_memory() && !messages_.current() && !waiting_.backlog().empty();
  }
  std::size_t untaken() override;
  bool region_removed() override {
    if (!over()) messages_.region_removed();
    return true;
  }
  bool let_go() override { return disconnection_.let_go(); }
  void close(CloseReason reason) override { disconnection_.close(reason); }

  // For the fabric.
  int socket() const { return socket_.get(); }
  // Also one whose number is another descriptor's by now, since the program has closed it.
  bool has_socket() const { return static_cast<bool>(socket_); }
  void ready(std::uint32_t events);
  // Goes on with what waited for its turn; true if anything moved.
  bool turn(bool told = false);
  bool receive(bool told = false);  // true if anything came
  void look_for_silence(os::Nanoseconds limit);
  void descriptors_lost();

  // ---- its parts
  Negotiation& negotiation() { return negotiation_; }
  ReadingTurn& reading_turn() { return turn_; }
  OutgoingHalf& outgoing() { return outgoing_; }
  Requester& requester() { return requester_; }
  SegmentReceiver& segments() { return segments_; }
  SegmentReader& reader() { return segments_.reader(); }
  Placement& placement() { return placement_; }
  MessageReceiver& messages() { return messages_; }
  BufferWait& waiting() { return waiting_; }
  ReadResponder& responder() { return responder_; }
  Disconnection& disconnection() { return disconnection_; }

  // ---- for its parts
  Fabric& fabric() { return fabric_; }
  SoftQueuePair& queue_pair() { return queue_pair_; }
  // False: there is none, or it cannot be watched, but is still there.
  bool take_socket(os::UniqueFd socket);
  void drop_socket() { socket_.reset(); }
  os::UniqueFd leave_socket() { return std::move(socket_); }
  void set_order(base::HiddenOrder order) { order_ = order; }
  bool over() const { return disconnection_.over(); }  // nothing that arrives counts any more

 private:
  using Phase = Negotiation::Phase;

  void told();
  ssize_t read_some(std::size_t& wanted);

  Fabric& fabric_;
  SoftQueuePair& queue_pair_;
  os::UniqueFd socket_;
  [[no_unique_address]] base::HiddenOrder order_;  // of what goes through it
  ReadingTurn turn_{fabric_, *this};
  Negotiation negotiation_{*this};

  // The outgoing half.
  OutgoingHalf outgoing_{fabric_, turn_};
  Requester requester_{*this};

  // The incoming half, with the engine.
  SegmentReceiver segments_{*this};
  Placement placement_{*this};
  MessageReceiver messages_{*this};
  BufferWait waiting_{*this};
  ReadResponder responder_{*this};
  Disconnection disconnection_{*this};
};

}  // namespace anydat::nic::soft::iwarp
