// SPDX-License-Identifier: BSD-3-Clause
// The process that hostile peers are let loose on: a server with one SRQ that accepts everybody and answers every
// message, and a client of whatever service point it is told to connect to.
#pragma once

#include <dat/udat.h>

#include <cstdint>
#include <string>

#include "footprint.h"
#include "raw_peer.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {

// A well-behaved client announces itself by this in its private data; what it sends is compared.
struct FriendlyHello {
  std::uint64_t magic = 0x667269656e64;
  std::uint64_t seed = 0;
};

class HostileTarget {
 public:
  static constexpr int kBuffers = 64;
  static constexpr std::size_t kBytes = 64 * 1024;
  static constexpr std::size_t kAnswerBytes = 32;

  explicit HostileTarget(const Wire& wire);
  ~HostileTarget();

  DAT_CONN_QUAL qualifier() const { return qualifier_; }
  std::string service() const { return raw_service_name(qualifier_); }

  struct State {
    Footprint footprint;
    int connections = 0;
    int pending_attempts = 0;
    DAT_COUNT available = 0;
    DAT_COUNT outstanding = 0;
    int wrong_messages = 0;  // of well-behaved clients
    bool operator==(const State&) const = default;
  };
  State state();
  // Everything is as it was at the start: no connection, all buffers on the queue, no descriptor or segment more.
  void expect_back_to(const State& before, Caller caller = Caller::here());

  // Makes it ask for a connection; its attempt ends in some event by itself, within the time-out of 300 ms.
  void connect_to(DAT_CONN_QUAL qualifier);

  void stop();  // by SIGSTOP
  void resume() { process_.resume(); }

  // The warnings it has printed so far.
  int warnings();
  void finish();  // ends it; throws unless it ends well

 private:
  std::string ask(const std::string& command);
  std::string printed();

  PeerProcess process_;
  Fd its_stderr_;
  DAT_CONN_QUAL qualifier_ = 0;
};

std::ostream& operator<<(std::ostream& out, const HostileTarget::State& state);

// A well-behaved client of the target, in this process.
class Friend {
 public:
  Friend(const Wire& wire, DAT_CONN_QUAL qualifier, std::uint64_t seed);
  // Sends a message of that size and waits for its answer.
  void pass_message(std::size_t bytes);
  void leave();

 private:
  const std::uint64_t seed_;
  std::uint64_t number_ = 0;
  Side side_;
  Lmr outgoing_;
  Lmr incoming_;
  Ep ep_;
};

}  // namespace anydat::test
