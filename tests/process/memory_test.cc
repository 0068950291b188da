// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint costs: a thousand of them on one SRQ, connected from another process, take less than 16 KiB each
// beside the queue's own buffers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <list>
#include <string>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kEndpoints = 1000;
constexpr double kLimit = 16 * 1024;

// Connects so many endpoints. Arguments: qualifier, number.
void play_crowd(RoleContext& context) {
  const DAT_CONN_QUAL qualifier = std::stoull(context.arguments.at(0));
  const int count = std::stoi(context.arguments.at(1));
  Side side(context.wire);
  std::list<Ep> endpoints;
  for (int i = 0; i < count; ++i) {
    const Ep& ep = endpoints.emplace_back(side);
    require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  context.parent.say("connected");
  context.parent.hear(std::chrono::hours(1));
}

const Role kCrowd("crowd", play_crowd);

struct Memory {
  double resident;
  double allocated;
  static Memory now() {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    const auto info = ::mallinfo2();
    return {.resident = static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)),
            .allocated = static_cast<double>(info.uordblks + info.hblkhd)};
  }
};

class EndpointMemory : public testing::TestWithParam<Wire> {
 protected:
  // What each of kEndpoints endpoints costs.
  Memory cost_of(const DAT_EP_ATTR& attr) {
    Side side(GetParam());
    const Srq srq(side.ia, side.pz, 64);
    side.listen();
    const Memory before = Memory::now();
    std::list<Ep> endpoints;
    Memory after{};
    {
      PeerProcess crowd("crowd", GetParam(), {std::to_string(side.listen()), std::to_string(kEndpoints)});
      for (int i = 0; i < kEndpoints; ++i) {
        const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
        const Ep& ep = endpoints.emplace_back(side, srq, attr);
        require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr),
                "dat_cr_accept");
        expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      }
      crowd.channel().hear();
      after = Memory::now();
    }
    return {.resident = (after.resident - before.resident) / kEndpoints,
            .allocated = (after.allocated - before.allocated) / kEndpoints};
  }

  void expect_small(const Memory& each, const DAT_EP_ATTR& attr) {
    fmt::print("with {} requests of {} segments, each of {} endpoints takes {:.1f} KiB, {:.1f} KiB of them resident\n",
               attr.max_request_dtos, attr.max_request_iov, kEndpoints, each.allocated / 1024, each.resident / 1024);
    if (built_with_sanitizer()) {
      GTEST_SKIP() << "a sanitizer adds memory of its own";
    }
    EXPECT_LT(each.resident, kLimit);
    EXPECT_LT(each.allocated, kLimit);
  }
};

TEST_P(EndpointMemory, IsSmallWithShallowQueues) {
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_request_dtos = 16;
  expect_small(cost_of(attr), attr);
}

TEST_P(EndpointMemory, IsSmallWithDeepQueues) {
  const DAT_EP_ATTR attr = default_srq_ep_attr();
  expect_small(cost_of(attr), attr);
}

INSTANTIATE_TEST_SUITE_P(Wires, EndpointMemory, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
