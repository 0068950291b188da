// SPDX-License-Identifier: BSD-3-Clause
// A server with one shared receive queue: the survivor of the process tests, and the one that gets killed.
#pragma once

#include <dat/udat.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "support/dat_fixture.h"

namespace anydat::test {

// The server's end of one connection. Its connection events and send completions are its own; receives are shared.
struct ServerEnd {
  ServerEnd(const Side& side, const Srq& srq, std::uint64_t seed_of_sender, DAT_VLEN longest);

  std::uint64_t seed;          // of the messages that the other side sends
  std::uint64_t received = 0;  // of them
  Evd connect;
  Evd request;
  Ep ep;
};

// One SRQ of `buffers` buffers, all of them posted; each buffer is posted again when its completion has been reaped.
// Messages are compared with what the sender of that connection must send next.
class SrqServer {
 public:
  SrqServer(const Wire& wire, int buffers, std::size_t bytes);

  DAT_CONN_QUAL qualifier() { return side_.listen(); }
  Side& side() { return side_; }

  // The next connection request, which must come.
  DAT_CR_HANDLE request(Caller caller = Caller::here());
  // Accepts it with a new endpoint, whose first connection event is still to come.
  ServerEnd& accept(DAT_CR_HANDLE request, std::uint64_t seed);
  // request(), accept(), and ESTABLISHED.
  ServerEnd& welcome(std::uint64_t seed, Caller caller = Caller::here());
  void drop(ServerEnd& end);  // frees the endpoint

  struct Outcome {
    ServerEnd* end;  // null if the endpoint is gone
    bool success;
  };
  // The next receive completion. A message that is not the expected one fails the test. Nothing when the time is up.
  std::optional<Outcome> reap(std::chrono::milliseconds timeout = patience());
  // Reaps until `end` has received `total` messages; false if a receive fails or nothing comes.
  bool receive(ServerEnd& end, std::uint64_t total);
  // Reaps all that is there now. Returns how many of the receives had failed.
  int reap_the_rest();
  // True once a message to `end` has begun. It may have ended as well, but has not been reaped.
  bool message_has_begun(const ServerEnd& end);

  // Posts `count` sends of `bytes` bytes each: the messages of the end's seed from number 0 on.
  void send(ServerEnd& end, int count, std::size_t bytes);

  // From now on reaped buffers stay off the queue, until post_reaped().
  void stop_posting() { posts_again_ = false; }
  void post_reaped();

  // INV-1, INV-7: once everything is reaped, every buffer is on the queue again. Fails otherwise.
  void expect_all_buffers(Caller caller = Caller::here());

 private:
  void post(std::uint64_t buffer);

  const int buffers_;
  const std::size_t bytes_;
  Side side_;
  Lmr memory_;
  Lmr outgoing_;
  Srq srq_;
  std::list<ServerEnd> ends_;
  bool posts_again_ = true;
  std::vector<std::uint64_t> reaped_;  // buffers that are off the queue
};

}  // namespace anydat::test
