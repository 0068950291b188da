// SPDX-License-Identifier: BSD-3-Clause
// Numbers that come to their end, and limits that a user sets too tight.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstring>
#include <thread>

#include "wire/tcp_test.h"

namespace {

// The next random number of four bytes is this one, if it is not 0.
std::atomic<std::uint32_t> chosen{0};

}  // namespace

// In place of the C library's: the library asks the kernel for random bytes by its number, which has no way to be told what
// to answer. Like the C library's, it takes six arguments wherever they are, also when a caller has passed fewer: no error of
// his, so the address sanitizer does not look.
extern "C" __attribute__((no_sanitize("address"))) long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long argument[6];
  for (long& value : argument) value = va_arg(list, long);
  va_end(list);
  if (number == SYS_getrandom && argument[1] == sizeof(std::uint32_t)) {
    if (const std::uint32_t answer = chosen.exchange(0); answer != 0) {
      std::memcpy(reinterpret_cast<void*>(argument[0]), &answer, sizeof answer);
      return sizeof answer;
    }
  }
  using Function = long (*)(long, ...);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
  return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpLimits : public TcpTest {};

// Every Read has a key for its sink, which is made up and counts up. 0, where the count wraps around, is none.
TEST_F(TcpLimits, TheKeysOfReadsGoOnWhenTheirCounterWraps) {
  Side other(tcp_wire());
  const Lmr sink(other.ia, other.pz, 64);
  const Lmr source(target.side().ia, target.side().pz, 64);
  chosen = 0xffff'fffe;  // where the first connection that is made begins to count
  Connection connection = connect_pair(target.side(), other);
  ASSERT_EQ(chosen, 0u) << "nobody has asked for a number to begin with";
  DAT_LMR_TRIPLET to = sink.triplet();
  DAT_RMR_TRIPLET from = source.remote(0, 64);
  for (int i = 0; i < 8; ++i) {
    require(dat_ep_post_rdma_read(connection.client.get(), 1, &to, {}, &from, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    expect_completion(other.request.get(), DAT_DTO_SUCCESS);
  }
  EXPECT_EQ(connection.client.state(), DAT_EP_STATE_CONNECTED);
  for (const Ep* ep : {&connection.client, &connection.server}) dat_ep_disconnect(ep->get(), DAT_CLOSE_ABRUPT_FLAG);
}

// A host that is well may put an acknowledgement off for 40 ms and more. None of these limits is as tight as they say.
TEST_F(TcpLimits, AHealthyConnectionStandsWhateverTheTimeOutOfSilence) {
  for (const char* limit : {"0", "1", "100"}) {
    Wire wire = tcp_wire();
    wire.env["DAT_TCP_TIMEOUT_MS"] = limit;
    Side side(wire);
    MpaPeer peer(side.listen());
    peer.greet({});
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const Ep ep(side);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    ASSERT_TRUE(peer.hear_answer());
    const Lmr memory(side.ia, side.pz, 64);
    DAT_LMR_TRIPLET segment = memory.triplet();
    for (int i = 0; i < 4; ++i) {
      require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
      peer.send_message(hex("'go on'"));
      expect_completion(side.recv.get(), DAT_DTO_SUCCESS);
      // Long enough without a word that the answer finds the last acknowledgement old; what it is acknowledged with is
      // put off, since the peer has just spoken.
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG), "dat_ep_post_send");
      EXPECT_FALSE(wait_event(side.connect.get(), std::chrono::milliseconds(60))) << "with a limit of " << limit;
      EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
      if (testing::Test::HasFailure()) return;
      ASSERT_TRUE(peer.hear_segment());
    }
    peer.stop_sending();
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
}

}  // namespace
}  // namespace anydat::test
