// SPDX-License-Identifier: BSD-3-Clause
// A host on the other side of a TCP connection that speaks iWARP by hand, so that it can be spoken wrongly.
#pragma once

#include <dat/udat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/format/mpa.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "os/unique_fd.h"
#include "unit/hex.h"

namespace anydat::test {

// Every wait ends after patience(); what did not come by then is reported as not there.
class MpaPeer {
 public:
  // Connects to a service point of this host.
  explicit MpaPeer(DAT_CONN_QUAL port);
  // A program of this host has connected to it.
  explicit MpaPeer(os::UniqueFd socket);

  void send(std::span<const std::byte> bytes);
  void send(const Bytes& bytes) { send(std::span<const std::byte>(bytes)); }
  // As much of it as is taken, until nothing has been for quiet_time(); says how much that was.
  std::size_t send_what_goes(std::span<const std::byte> bytes);
  void stop_sending();  // as a process that ends in order
  void reset();         // as one that does not
  // Its descriptor has such a number at least, so that the library may have those below.
  void move_descriptor_to(int number);
  void hold_little();  // of what it has not read: its window is small, however fast it reads

  // ---- set-up
  struct Greeting {
    bool crc = false;
    bool markers = false;
    std::uint8_t revision = 1;
    std::optional<nic::soft::iwarp::Enhanced> enhanced{};
    Bytes private_data{};
  };
  static Bytes request(const Greeting& greeting);
  // Says that and remembers what was agreed on.
  void greet(const Greeting& greeting);
  void greet() { greet(Greeting{}); }
  struct Answer {
    nic::soft::iwarp::StartUp frame;  // but for its private data
    Bytes private_data;
  };
  std::optional<Answer> hear_answer();
  // The other way round.
  bool hear_request();
  static Bytes answer(const Greeting& greeting, bool rejected = false);

  // ---- segments
  // The frame around a segment, with a good CRC where one is agreed on.
  Bytes frame(const Bytes& segment) const;
  static Bytes segment(const nic::soft::iwarp::SegmentHeader& header, const Bytes& payload = {});
  void send_segment(const nic::soft::iwarp::SegmentHeader& header, const Bytes& payload = {}) {
    send(frame(segment(header, payload)));
  }
  // A whole Send, the next one or another.
  void send_message(const Bytes& payload) { send_message(payload, next_send_++); }
  void send_message(const Bytes& payload, std::uint32_t sequence);
  // The message that ends the stream, with that payload.
  void send_terminate(const Bytes& payload);
  void ask_read(const nic::soft::iwarp::ReadRequest& request);

  struct Segment {
    nic::soft::iwarp::SegmentHeader header;
    Bytes payload;
  };
  // The next segment that has a meaning: what the library says only to its like is passed over. Nothing if the stream
  // has ended, or none came. A CRC that is wrong fails the test.
  std::optional<Segment> hear_segment();
  std::optional<Segment> hear_any_segment();  // also what it says to its like
  // The message that ended the stream, whatever else came before it; the stream has ended behind it.
  struct HeardTerminate {
    nic::soft::iwarp::TerminateCode code{};
    Bytes segment_header;
    Bytes read_request;
    friend bool operator==(const HeardTerminate&, const HeardTerminate&) = default;
  };
  std::optional<HeardTerminate> hear_terminate();
  // The other side has hung up, in whatever way. What it says before that is dropped.
  bool hung_up();

 private:
  std::size_t send_within(std::span<const std::byte> bytes, std::chrono::milliseconds pause);
  // False if the stream ends first.
  bool fill(std::size_t bytes);
  Bytes take(std::size_t bytes);

  os::UniqueFd socket_;
  Bytes heard_;  // and not yet taken
  bool crc_ = false;
  bool want_crc_ = false;
  std::uint32_t next_send_ = nic::soft::iwarp::kFirstSequence;
  std::uint32_t next_read_ = nic::soft::iwarp::kFirstSequence;
};

// Where such a host is connected to.
class MpaListener {
 public:
  MpaListener();
  DAT_CONN_QUAL port() const { return port_; }
  // The next caller. Nothing if none comes.
  std::optional<MpaPeer> accept();
  // From now on another socket may listen there, also while the caller is still connected.
  void stop() { socket_.reset(); }

 private:
  os::UniqueFd socket_;
  DAT_CONN_QUAL port_ = 0;
};

}  // namespace anydat::test
