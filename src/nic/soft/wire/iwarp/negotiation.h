// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nic/private_data_limits.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/outgoing_half.h"
#include "nic/soft/wire/iwarp/terms.h"
#include "nic/timer.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::iwarp {

// How a connection over TCP comes about: the way to the peer's port, request and answer (RFC 5044, section 7; RFC
// 6581), and the first message of each side, by which the ends know whether the other is one of ours.
//
// With the engine held. Lives and dies with its stream.
class Negotiation {
 public:
  // inquiring: it is not known yet which port to connect to. greeting: the passive side has accepted, and its first
  // message is still to come.
  enum class Phase : std::uint8_t { idle, inquiring, connecting, asking, greeting, accepting, open, over };
  enum class Peer : std::uint8_t { unknown, ours, other };

  explicit Negotiation(TcpStream& stream) : stream_(stream) {}
  Negotiation(const Negotiation&) = delete;
  Negotiation& operator=(const Negotiation&) = delete;

  // ---- active side
  // unreachable: there is no way to that address. The outcome is the queue pair's to be told.
  Status connect(const ConnectParameters& parameters);
  // By the inquiry, which is over: the port of the service point, or 0 and why there is none.
  void inquired(std::uint16_t port, ConnectFailure why);
  void dialled();  // or not: the socket has word of it
  // What is behind the answer.
  std::span<const std::byte> answer_arrived(std::span<const std::byte> bytes);
  void hung_up_on();  // instead of an answer
  void fail(ConnectFailure why, std::span<const std::byte> private_data = {});

  // ---- passive side, the second once the queue pair has the stream; the first may throw std::bad_alloc
  void prepare_to_accept(const StartUp& asked, const Address& remote, std::span<const std::byte> private_data);
  void accept(os::UniqueFd socket);

  // ---- the peer's first messages
  bool first_frame_seen() const { return first_frame_seen_; }
  void empty_frame_arrived();
  void first_segment_begins(const SegmentHeader& segment, std::size_t payload_bytes);
  void greeted_by_send();  // while it is still greeting
  // A segment has arrived, and it is not known yet what the peer is. True: it was for this alone, or the connection has
  // ended.
  bool hear(const SegmentHeader& segment, std::size_t payload_bytes);

  // ---- how far it has come
  Phase phase() const { return phase_; }
  Peer peer() const { return peer_; }
  bool peer_is_ours() const { return peer_ == Peer::ours; }
  bool peer_takes_extensions() const { return peer_is_ours() && peer_takes_ != 0; }
  const Address& remote() const { return remote_; }
  void abandon();  // what has been begun and has no socket of its connection
  void end() { phase_ = Phase::over; }

 private:
  struct SetUp {
    explicit SetUp(Negotiation& negotiation);
    ~SetUp();
    std::array<std::byte, kStartUpBytesMax> bytes;  // active: of the answer
    std::size_t count = 0;
    std::array<std::byte, kPrivateDataMax> data;
    std::size_t data_bytes = 0;
    StartUp frame;  // the peer's
    Negotiation& negotiation;
    os::Nanoseconds patience;
    Timer impatience;  // active: the greeting is not answered
    Timer refusal;     // active: nothing listens at the port
  };

  void make_offer();
  Status look_for(ConnQual qual);
  bool look_again_for(ConnQual qual);
  Status dial(const Address& remote, std::uint64_t port);
  bool dial_again(std::uint64_t port);
  void ask();
  void greet_again();
  void answered(const StartUp& answer);
  void rejected(const StartUp& answer);
  void settle(const Terms& terms, Transmitter& line);  // with the lock of the outgoing half
  void first_frame();
  void expect_of_any_peer();
  void established();
  void say_hello(OutgoingHalf& outgoing) ANYDAT_REQUIRES(outgoing.lock());
  void note_peer(Peer peer);
  void greeted(ConnQual qual);

  TcpStream& stream_;
  ConnQual service_ = 0;           // active: the service point that is being asked
  Inquiry* inquiry_ = nullptr;     // where it is
  std::unique_ptr<SetUp> set_up_;  // until it is established
  os::UniqueFd reserved_;          // with the port that the request will come from (EP-CONN-2)
  Address remote_{};
  std::uint32_t peer_takes_ = 0;  // as it has told
  Offer own_;
  std::uint8_t revision_ = 2;
  bool active_ = false;
  bool first_frame_seen_ = false;
  Phase phase_ = Phase::idle;
  Peer peer_ = Peer::unknown;
};

}  // namespace anydat::nic::soft::iwarp
