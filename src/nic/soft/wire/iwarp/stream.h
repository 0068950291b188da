// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "base/lock.h"
#include "base/unique_fd.h"
#include "nic/soft/own_pages.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/last_words.h"
#include "nic/soft/wire/iwarp/outgoing_half.h"
#include "nic/soft/wire/iwarp/parked.h"
#include "nic/soft/wire/iwarp/read_responder.h"
#include "nic/soft/wire/iwarp/reading_turn.h"
#include "nic/soft/wire/iwarp/requester.h"
#include "nic/soft/wire/iwarp/segment_reader.h"
#include "nic/soft/wire/iwarp/terms.h"

namespace anydat::nic::soft::iwarp {

// One connection over TCP.
//
// A message that finds no receive buffer stops the reading. If that lasts, messages are taken in and kept up to a
// bound, so that Writes and answers to Reads behind them pass.
class TcpStream final : public Stream, private OwnPages::User {
 public:
  TcpStream(Fabric& fabric, SoftQueuePair& queue_pair);
  ~TcpStream() override;

  // Active side. unreachable: there is no way to that address. The outcome is the queue pair's to be told.
  Status connect(const ConnectParameters& parameters);
  // Passive side, the second once the queue pair has the stream. The first may throw std::bad_alloc.
  void prepare_to_accept(const StartUp& asked, const Address& remote, std::span<const std::byte> private_data);
  void accept(base::UniqueFd socket);

  // Stream
  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) override {
    return requester_.send(number, message, progress);
  }
  bool send_again(const SingleSend& send) override { return requester_.send_again(send); }
  std::size_t send_row(const SendRow& row) override { return requester_.send_row(row); }
  void resume_receiving() override;
  const char* wire() const override { return "tcp"; }
  bool holds_messages() const override { return stuck_ || !parked_.empty(); }
  bool awaits_memory_for_parked() const override { return awaits_memory_ && !current_ && !parked_.empty(); }
  std::size_t untaken() override;
  bool memory_changed() override;
  bool let_go() override;
  void close(CloseReason reason) override;

  // For the inquiry: it is over. The port of the service point, or 0 and why there is none.
  void inquired(std::uint16_t port, ConnectFailure why);

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
  LastWords& last_words() { return last_words_; }
  bool over() const { return closed_; }  // nothing that arrives counts any more
  bool peer_is_ours() const { return peer_ == Peer::ours; }

 private:
  // inquiring: it is not known yet which port to connect to. greeting: the passive side has accepted, and its first
  // message is still to come.
  enum class Phase : std::uint8_t { idle, inquiring, connecting, asking, greeting, accepting, open, over };
  using Into = SegmentReader::Into;
  using Step = SegmentReader::Step;
  enum class Peer : std::uint8_t { unknown, ours, other };

  // ---- set-up (stream_setup.cc)
  void make_offer();
  Status look_for(ConnQual qual);
  bool look_again_for(ConnQual qual);
  Status dial(const Address& remote, std::uint64_t port);
  bool dial_again(std::uint64_t port);
  void dialled();
  void ask();
  void greet_again();
  std::span<const std::byte> answer_arrived(std::span<const std::byte> bytes);
  void answered(const StartUp& answer);
  void rejected(const StartUp& answer);
  void fail(ConnectFailure why, std::span<const std::byte> private_data = {});
  void settle(const Terms& terms) ANYDAT_REQUIRES(outgoing_.lock());
  void first_frame();
  void expect_of_any_peer();
  void established();
  void say(Signal signal, std::uint32_t value) ANYDAT_REQUIRES(outgoing_.lock());
  void say_hello() ANYDAT_REQUIRES(outgoing_.lock());
  void say_to(std::uint32_t stag, std::uint64_t offset) ANYDAT_REQUIRES(outgoing_.lock());
  void signalled(std::uint64_t offset);
  void note_peer(Peer peer);
  void greeted(ConnQual qual);

  // ---- the end (stream.cc)
  void end_of_stream();
  void lost(int error);
  int loss_told_to_sender();
  Transmitter take_line();
  void hang_up();
  void terminated(std::span<const std::byte> payload);
  void refuse(TerminateCode code, CloseReason reason = CloseReason::local_error);
  void refuse_parked(TerminateCode code, CloseReason reason);
  void refuse_in_words(TerminateCode code, CloseReason reason);  // in the last ones
  // On the message that would be delivered next: all before it have been.
  void prepare_last_words_on_message(TerminateCode code);
  void prepare_last_words_for(CloseReason reason);
  template <typename Action>
  void or_break(Action&& action) {
    try {
      action();
    } catch (const std::bad_alloc&) {
      out_of_memory();
    }
  }
  void out_of_memory();  // what takes memory and finds none ends this connection and no other

  // ---- receiving (stream_receive.cc)
  ssize_t read_some(std::size_t& wanted);
  void told();
  std::span<const std::byte> consume(std::span<const std::byte> bytes);
  std::size_t deliver_whole(std::span<const std::byte> bytes);
  std::span<const std::byte> take_front(std::span<const std::byte> bytes);
  std::span<const std::byte> take_payload(std::span<const std::byte> bytes);
  std::span<const std::byte> take_trailer(std::span<const std::byte> bytes);

  // ---- segments (stream_segments.cc)
  void begin_segment();
  void enter_segment();
  void begin_send();
  void begin_immediate();
  void begin_atomic_response();
  bool is_hello() const;
  void begin_write();
  void begin_read_response();
  void end_segment();
  void message_delivered(std::uint64_t length);
  void confirm();
  void message_ended();
  bool finish_message(Incoming& message);
  std::uint32_t arriving_invalidates();
  void immediate_ended();
  std::size_t aim(std::span<iovec> pieces, std::size_t count);
  std::size_t find_target(std::span<iovec> pieces, std::size_t count);
  void landed(std::size_t count);
  bool place(std::span<const std::byte> bytes);
  bool may_write(std::uint64_t at, std::uint64_t length, std::uint64_t& where);  // as the segment does

  // ---- memory that is not there (stream_pages.cc)
  bool can_be_written(std::span<const iovec> pieces);
  bool next_buffer_there(std::size_t bytes);
  bool result_there();
  void wants_pages() override;
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;
  void limit_wait_for_memory();
  void give_memory_up();
  void end_discarded();

  // ---- waiting for buffers (stream_waiting.cc)
  bool reads_no_more();
  void wait_for_buffer(bool solicited);
  bool deliver_invalidating(const Parked::Message& message);
  void be_patient();
  void patience_ended();
  void look_past();
  void go_on();
  void take_held();
  void hold(std::span<const std::byte> bytes);
  void drop_held();
  void deliver_parked();
  void drop_parked();

  Fabric& fabric_;
  SoftQueuePair& queue_pair_;
  ReceiveSide& receives_;  // its part
  ReadingTurn turn_{fabric_, *this};
  base::UniqueFd socket_;

  // With the engine held.
  ConnQual service_ = 0;        // active: the service point that is being asked
  Inquiry* inquiry_ = nullptr;  // where it is
  base::UniqueFd reserved_;     // with the port that the request will come from (EP-CONN-2)
  bool active_ = false;
  bool closed_ = false;         // nothing that arrives counts any more
  bool said_goodbye_ = false;   // the peer
  bool hung_up_ = false;        // the peer has, but there may be more to read
  bool awaits_memory_ = false;  // what is arriving goes where nothing can be written yet; nothing is read meanwhile
  bool discards_ = false;       // which never came: what arrives is heard for how the peer ends
  bool ended_ = false;          // and there is not
  Phase phase_ = Phase::idle;
  Peer peer_ = Peer::unknown;
  Address remote_{};
  std::uint32_t peer_takes_ = 0;  // as it has told
  base::HiddenOrder order_;       // of what goes through the socket
  Offer own_;
  std::uint8_t revision_ = 2;
  struct SetUp {
    explicit SetUp(TcpStream& stream);
    ~SetUp();
    std::array<std::byte, kStartUpBytesMax> bytes;  // active: of the answer
    std::size_t count = 0;
    std::array<std::byte, kPrivateDataMax> data;
    std::size_t data_bytes = 0;
    StartUp frame;  // the peer's
    TcpStream& stream;
    base::Nanoseconds patience;
    Timer impatience;  // active: the greeting is not answered
  };
  std::unique_ptr<SetUp> set_up_;  // until it is established
  LastWords last_words_;

  // The outgoing half.
  OutgoingHalf outgoing_{fabric_, turn_};
  Requester requester_{*this};

  // The incoming half, with the engine.
  SegmentReader reader_;
  bool first_frame_seen_ = false;

  std::uint32_t sends_expected_ = kFirstSequence;
  std::uint32_t sends_delivered_ = 0;  // sequence number of the last
  bool owes_word_ = false;             // of what has been delivered
  std::uint64_t message_bytes_ = 0;    // whole segments of the message that is arriving
  Incoming* current_ = nullptr;
  // The segment that is arriving begins a message without a buffer, and waits for one with all that was read behind it.
  bool stuck_ = false;
  std::vector<std::byte> held_;
  std::size_t held_from_ = 0;
  bool looks_past_ = false;            // messages without buffers are taken in
  base::Nanoseconds waits_since_ = 0;  // without any progress
  Timer patience_{[this] { patience_ended(); }};
  Parked parked_{fabric_.parked()};
  ReadResponder responder_{*this};
  OwnPages targets_;           // of what arrives; with the engine
  std::uint64_t read_at_ = 0;  // Engine::ticks()
  Timer memory_patience_{[this] { give_memory_up(); }};
};

}  // namespace anydat::nic::soft::iwarp
