// SPDX-License-Identifier: BSD-3-Clause
// What opening an adapter takes of the process's limits, and what comes of limits that leave no room for it.
#include <anydat/anydat.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "forked.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

Wire wire_of_choice(const std::string& choice) {
  return {.name = choice, .ia_name = "soft", .env = {{"DAT_WIRE", choice}}};
}

// One message from one side of this process to the other.
bool a_message_crosses(const Wire& wire) {
  Side server(wire);
  Side client(wire);
  Connection pair = connect_pair(server, client);
  Lmr sent(client.ia, client.pz, 10'000);
  const Lmr received(server.ia, server.pz, 10'000);
  std::fill(sent.bytes().begin(), sent.bytes().end(), std::byte{42});
  DAT_LMR_TRIPLET there = received.triplet();
  DAT_LMR_TRIPLET here = sent.triplet();
  require(dat_ep_post_recv(pair.server.get(), 1, &there, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  require(dat_ep_post_send(pair.client.get(), 1, &here, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(client.request.get());
  expect_completion(server.recv.get());
  return std::equal(sent.bytes().begin(), sent.bytes().end(), received.bytes().begin());
}

DAT_RETURN open_and_close(const Wire& wire) {
  const ScopedEnv env(wire.env);
  std::string name = wire.ia_name;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_ia_open(name.data(), 8, &async, &ia);
  if (rc == DAT_SUCCESS) require(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return rc;
}

void set_limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = std::min(value, limit.rlim_max);
  ASSERT_EQ(::setrlimit(resource, &limit), 0);
}

TEST(OpenCost, WithoutLeaveForFilesNothingIsKilledAndTcpServes) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    set_limit(RLIMIT_FSIZE, 0);
    void* memory = nullptr;
    EXPECT_THAT(anydat_alloc_shareable(100, &memory), HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_THAT(open_and_close(wire_of_choice("shm")), HasType(DAT_INSUFFICIENT_RESOURCES));
    return a_message_crosses(wire_of_choice("auto"));
  }));
}

TEST(OpenCost, FilesThatMayBeSmallLeaveTcp) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    set_limit(RLIMIT_FSIZE, 2u << 20);
    return a_message_crosses(wire_of_choice("auto"));
  }));
}

long status_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long value = 0;
    if (word == field + ":" && status >> value) return value;
  }
  return -1;
}

TEST(OpenCost, OfLockedMemoryIsNotThatOfAllHandlesAndRegions) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  EXPECT_TRUE(holds_in_child([] {
    EXPECT_THAT(open_and_close(wire_of_choice("auto")), Succeeds());  // what is needed once
    if (::mlockall(MCL_FUTURE) != 0) return true;                     // there is no leave to lock memory
    const long before = status_kib("VmLck");
    {
      const Ia ia(wire_of_choice("auto"));
      EXPECT_LT(status_kib("VmLck") - before, 40 << 10);
    }
    return true;
  }));
}

// The limit lies below what locking all would take: calls are refused in words, or work.
TEST(OpenCost, UnderATightLimitOfLockedMemoryCallsFailInOrder) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  EXPECT_TRUE(holds_in_child([] {
    if (::mlockall(MCL_FUTURE) != 0) return true;
    set_limit(RLIMIT_MEMLOCK, 1u << 20);
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return true;  // to whom limits do not apply
    const DAT_RETURN rc = open_and_close(wire_of_choice("auto"));
    return rc == DAT_SUCCESS || is_type(rc, DAT_INSUFFICIENT_RESOURCES);
  }));
}

}  // namespace
}  // namespace anydat::test
