// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "base/lock.h"
#include "base/unique_fd.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/buffer_wait.h"
#include "nic/soft/wire/iwarp/disconnection.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/message_receiver.h"
#include "nic/soft/wire/iwarp/negotiation.h"
#include "nic/soft/wire/iwarp/outgoing_half.h"
#include "nic/soft/wire/iwarp/placement.h"
#include "nic/soft/wire/iwarp/read_responder.h"
#include "nic/soft/wire/iwarp/reading_turn.h"
#include "nic/soft/wire/iwarp/requester.h"
#include "nic/soft/wire/iwarp/segment_reader.h"
#include "nic/soft/wire/iwarp/terms.h"

namespace anydat::nic::soft::iwarp {

// One connection over TCP: its socket, its turns, where what arrives goes, and how it ends. How it comes about is in
// Negotiation; requests and their answers are in Requester, what the peer asks for is in ReadResponder, and both share
// OutgoingHalf; SegmentReader makes segments of what is read, and BufferWait keeps those that have no buffer yet.
//
// A message that finds no receive buffer stops the reading. If that lasts, messages are taken in and kept up to a
// bound, so that Writes and answers to Reads behind them pass.
class TcpStream final : public Stream {
 public:
  TcpStream(Fabric& fabric, SoftQueuePair& queue_pair);
  ~TcpStream() override;

  // Active side. unreachable: there is no way to that address. The outcome is the queue pair's to be told.
  Status connect(const ConnectParameters& parameters) { return negotiation_.connect(parameters); }
  // Passive side, the second once the queue pair has the stream. The first may throw std::bad_alloc.
  void prepare_to_accept(const StartUp& asked, const Address& remote, std::span<const std::byte> private_data) {
    negotiation_.prepare_to_accept(asked, remote, private_data);
  }
  void accept(base::UniqueFd socket) { negotiation_.accept(std::move(socket)); }

  // Stream
  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) override {
    return requester_.send(number, message, progress);
  }
  bool send_again(const SingleSend& send) override { return requester_.send_again(send); }
  std::size_t send_row(const SendRow& row) override { return requester_.send_row(row); }
  void resume_receiving() override { waiting_.resume(); }
  const char* wire() const override { return "tcp"; }
  bool holds_messages() const override { return waiting_.any(); }
  bool awaits_memory_for_parked() const override {
    return placement_.awaits_memory() && !messages_.current() && !waiting_.parked().empty();
  }
  std::size_t untaken() override;
  bool memory_changed() override {
    if (!over()) messages_.memory_changed();
    return true;
  }
  bool let_go() override { return disconnection_.let_go(); }
  void close(CloseReason reason) override { disconnection_.close(reason); }

  // For the inquiry: it is over. The port of the service point, or 0 and why there is none.
  void inquired(std::uint16_t port, ConnectFailure why) { negotiation_.inquired(port, why); }

  // For the fabric.
  int socket() const { return socket_.get(); }
  void ready(std::uint32_t events);
  // Goes on with what waited for its turn; true if anything moved.
  bool turn(bool told = false);
  bool receive(bool told = false);  // true if anything came
  bool wants_turn() const { return turn_.wanted(); }
  void read_on() { turn_.want(); }  // with its next turn
  void look_for_silence(base::Nanoseconds limit);
  void descriptors_lost();

  // ---- its parts, for each other
  Fabric& fabric() { return fabric_; }
  SoftQueuePair& queue_pair() { return queue_pair_; }
  ReadingTurn& reading_turn() { return turn_; }
  OutgoingHalf& outgoing() { return outgoing_; }
  Requester& requester() { return requester_; }
  ReadResponder& responder() { return responder_; }
  SegmentReader& reader() { return reader_; }
  Negotiation& negotiation() { return negotiation_; }
  MessageReceiver& messages() { return messages_; }
  BufferWait& waiting() { return waiting_; }
  Placement& placement() { return placement_; }
  Disconnection& disconnection() { return disconnection_; }
  bool peer_is_ours() const { return negotiation_.peer() == Negotiation::Peer::ours; }

  // ---- for its parts
  // False: there is none, or it cannot be watched, but is still there.
  bool take_socket(base::UniqueFd socket);
  void drop_socket() { socket_.reset(); }
  base::UniqueFd leave_socket() { return std::move(socket_); }
  void set_order(base::HiddenOrder order) { order_ = order; }
  bool over() const { return disconnection_.over(); }  // nothing that arrives counts any more
  void enter_segment();
  std::span<const std::byte> consume(std::span<const std::byte> bytes);

 private:
  using Into = SegmentReader::Into;
  using Step = SegmentReader::Step;
  using Phase = Negotiation::Phase;
  using Peer = Negotiation::Peer;

  // ---- receiving (stream_receive.cc)
  ssize_t read_some(std::size_t& wanted);
  void told();
  std::span<const std::byte> take_front(std::span<const std::byte> bytes);
  std::span<const std::byte> take_payload(std::span<const std::byte> bytes);
  std::span<const std::byte> take_trailer(std::span<const std::byte> bytes);

  // ---- segments (stream_segments.cc)
  void begin_segment();
  void begin_atomic_response();
  void begin_read_response();
  void end_segment();
  void end_discarded();
  void signalled(std::uint64_t offset);

  Fabric& fabric_;
  SoftQueuePair& queue_pair_;
  Negotiation negotiation_{*this};
  ReadingTurn turn_{fabric_, *this};
  base::UniqueFd socket_;

  [[no_unique_address]] base::HiddenOrder order_;  // of what goes through the socket

  // The outgoing half.
  OutgoingHalf outgoing_{fabric_, turn_};
  Requester requester_{*this};

  // The incoming half, with the engine.
  SegmentReader reader_;

  MessageReceiver messages_{*this};
  BufferWait waiting_{*this};
  ReadResponder responder_{*this};
  Placement placement_{*this};
  Disconnection disconnection_{*this};
};

}  // namespace anydat::nic::soft::iwarp
