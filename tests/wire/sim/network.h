// SPDX-License-Identifier: BSD-3-Clause
// A network in one process, for tests only: it carries DDP segments between queue pairs as a network with many ways
// would, and everything that it does by chance comes from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "os/lock.h"

namespace anydat::nic::soft {
class SoftAdapter;
class SoftQueuePair;
}  // namespace anydat::nic::soft

namespace anydat::nic::soft::sim {

class SimStream;

// Thread safety: streams send from any thread; everything else is called by the test's thread, without any lock.
class Network {
 public:
  // Messages are cut into segments of 1 to `payload_max` bytes.
  Network(std::uint64_t seed, std::size_t payload_max);
  ~Network();  // Requires: every queue pair that was joined is disconnected or gone.

  struct End {
    SoftAdapter* adapter;
    SoftQueuePair* queue_pair;
  };
  // Two connected queue pairs, on whose connection nothing is under way, reach each other through here from now on.
  void join(const End& left, const End& right);

  // What is on its way.
  struct Flight {
    std::size_t to;  // which stream
    iwarp::SegmentHeader header;
    std::vector<std::byte> bytes;                     // of the whole segment
    std::optional<CloseReason> close = std::nullopt;  // no segment, but the end of the connection
  };
  std::size_t in_flight() const;
  // Delivers one of those that may be next, by chance. False if there is none.
  bool step();
  void run() {
    while (step()) {
    }
  }
  // Delivers all of those, the oldest first; says how many.
  std::size_t deliver_where(const std::function<bool(const iwarp::SegmentHeader&)>& chosen);
  // A segment that no sender has sent. Whatever bytes.
  void forge(const SoftQueuePair& to, std::vector<std::byte> bytes);
  // All that is on its way between the two is lost, and so is their connection.
  void cut(const SoftQueuePair& either);
  // What a queue pair's stream has refused its peer for.
  std::optional<iwarp::TerminateCode> refusal(const SoftQueuePair& of) const;

 private:
  friend class SimStream;
  struct Place {
    End end;
    SimStream* stream;  // null: gone
    std::size_t peer;
    std::optional<iwarp::TerminateCode> refusal = std::nullopt;
  };

  void send(std::size_t from, iwarp::SegmentHeader header, std::vector<std::byte> message);
  void send_close(std::size_t from, CloseReason reason);
  bool may_come(const Flight& flight) const ANYDAT_REQUIRES(lock_);
  void deliver(const Flight& flight);
  std::size_t index_of(const SoftQueuePair& queue_pair) const;
  void gone(std::size_t index);

  std::vector<Place> places_;  // changed while nothing is under way
  mutable os::Mutex lock_;     // a leaf
  std::mt19937_64 random_ ANYDAT_GUARDED_BY(lock_);
  const std::size_t payload_max_;
  std::vector<Flight> flights_ ANYDAT_GUARDED_BY(lock_);
};

// One end of a connection through it.
class SimStream final : public Stream {
 public:
  SimStream(Network& network, std::size_t index, SoftAdapter& adapter, SoftQueuePair& queue_pair)
      : network_(network),
        index_(index),
        adapter_(adapter),
        queue_pair_(queue_pair),
        receives_(queue_pair.receives()) {}
  ~SimStream() override;

  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) override;
  void resume_receiving() override;
  const char* wire() const override { return "sim"; }
  bool holds_messages() const override { return !held_.empty(); }
  bool region_removed() override { return true; }  // each segment is checked when it comes
  bool let_go() override;
  void close(CloseReason reason) override;

  void arrived(const std::vector<std::byte>& segment);
  void close_arrived(CloseReason reason);
  void lost();

 private:
  bool place(const std::vector<std::byte>& segment);  // false: there is no buffer for it now
  void place_write(const iwarp::SegmentHeader& header, std::span<const std::byte> payload);
  void refuse(iwarp::TerminateCode code, CloseReason reason = CloseReason::local_error);

  Network& network_;
  const std::size_t index_;
  SoftAdapter& adapter_;
  SoftQueuePair& queue_pair_;
  ReceiveSide& receives_;                                // its receiving side
  std::uint32_t next_sequence_ = iwarp::kFirstSequence;  // with the send lock
  std::uint64_t newest_ = 0;                             // the highest number that has come
  bool closed_ = false;
  std::vector<std::vector<std::byte>> held_;  // segments without a buffer
};

}  // namespace anydat::nic::soft::sim
