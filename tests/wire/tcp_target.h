// SPDX-License-Identifier: BSD-3-Clause
// A server that a host of the network does its worst to: a service point, memory that is open in different ways, and a
// well-behaved client on the same shared receive queue, whom nothing of that may touch.
#pragma once

#include <dat/udat.h>

#include <optional>
#include <utility>

#include "support/dat_fixture.h"

namespace anydat::test {

const Wire& tcp_wire();

class TcpTarget {
 public:
  static constexpr std::size_t kMemoryBytes = 4096;
  static constexpr std::size_t kBufferBytes = 256;
  static constexpr int kBuffers = 16;
  static constexpr DAT_COUNT kReadsIn = 2;  // that each peer may have under way

  TcpTarget();
  ~TcpTarget();

  DAT_CONN_QUAL port() { return side_.listen(); }
  // Takes the request that has arrived. The endpoint is established when its peer has done its part.
  Ep accept();
  void expect_established(const Ep& ep);
  // The endpoint's connection ends once, with one of the two events for that, and nothing more of it is heard.
  DAT_EVENT_NUMBER expect_end(const Ep& ep, Caller caller = Caller::here());
  // A message has come by that endpoint; answers its length. Its buffer is posted again.
  DAT_VLEN expect_message(const Ep& ep, Caller caller = Caller::here());
  // Posts a buffer again that a completion has given back.
  void post(DAT_DTO_COOKIE buffer);
  // The well-behaved client still gets through, and all buffers are where they belong.
  void expect_unharmed(Caller caller = Caller::here());
  void expect_no_request() { expect_no_event(side_.requests.get()); }

  // Memory of kMemoryBytes, opened to peers for...
  const Lmr& for_all() const { return all_; }
  const Lmr& for_reading() const { return readable_; }
  const Lmr& for_writing() const { return writable_; }
  const Lmr& of_other_zone() const { return elsewhere_; }
  bool memory_is_untouched() const;

  Side& side() { return side_; }
  Srq& srq() { return srq_; }

 private:
  Side side_;
  Side other_side_;
  Pz other_zone_;
  Lmr all_;
  Lmr readable_;
  Lmr writable_;
  Lmr elsewhere_;
  Lmr buffers_;
  Srq srq_;
  Connection friends_;
  Lmr friends_memory_;
};

}  // namespace anydat::test
