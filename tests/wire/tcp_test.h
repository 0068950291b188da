// SPDX-License-Identifier: BSD-3-Clause
// What the tests of TCP share: a target, and a host that has been let in.
#pragma once

#include <gtest/gtest.h>

#include "wire/mpa_peer.h"
#include "wire/tcp_target.h"

namespace anydat::test {

inline std::uint64_t address_of(const Lmr& lmr) {
  return reinterpret_cast<std::uintptr_t>(lmr.bytes().data());
}

inline nic::soft::iwarp::SegmentHeader send_header(std::uint32_t sequence = nic::soft::iwarp::kFirstSequence,
                                                   std::uint32_t offset = 0, bool last = true) {
  nic::soft::iwarp::SegmentHeader header;
  header.sequence = sequence;
  header.offset = offset;
  header.last = last;
  return header;
}

class TcpTest : public testing::Test {
 protected:
  Ep meet(MpaPeer& peer, const MpaPeer::Greeting& greeting = {}) {
    peer.greet(greeting);
    Ep ep = target.accept();
    target.expect_established(ep);
    EXPECT_TRUE(peer.hear_answer());
    return ep;
  }
  void expect_terminate(MpaPeer& peer, nic::soft::iwarp::TerminateCode code) {
    const auto said = peer.hear_terminate();
    ASSERT_TRUE(said) << "there was no Terminate";
    EXPECT_EQ(said->code, code) << nic::soft::iwarp::describe(said->code);
  }

  TcpTarget target;
};

}  // namespace anydat::test
