// SPDX-License-Identifier: BSD-3-Clause
// This library as a Provider in a dat.conf: under names of the administrator's choice, and as a second copy of itself,
// whose objects are foreign to the first. Another registry is played by tests/providers/old_registry.c.
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "conformance/registry_fixture.h"
#include "support/dat_fixture.h"
#include "support/few_descriptors.h"
#include "support/patience.h"

namespace anydat::test {
namespace {

using testing::ElementsAre;

constexpr const char* kOurselves = "libdat.so.1";  // already loaded, under that name

DAT_PROVIDER_ATTR provider_attributes(DAT_IA_HANDLE ia) {
  DAT_PROVIDER_ATTR attr{};
  EXPECT_THAT(dat_ia_query(ia, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), Succeeds());
  return attr;
}

// A message through the adapter of that name, from one endpoint of this process to another.
void send_a_message(const std::string& ia_name) {
  const Wire wire{.name = "shm", .ia_name = ia_name, .env = {{"DAT_WIRE", "shm"}}};
  Side server(wire);
  Side client(wire);
  const Connection connection = connect_pair(server, client);
  const Lmr to(server.ia, server.pz, 64);
  const Lmr from(client.ia, client.pz, 64);
  std::memset(from.bytes().data(), 0x5a, 64);
  DAT_LMR_TRIPLET segment = to.triplet(0, 64);
  require(dat_ep_post_recv(connection.server.get(), 1, &segment, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_recv");
  segment = from.triplet(0, 64);
  require(dat_ep_post_send(connection.client.get(), 1, &segment, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_send");
  (void)expect_completion(client.request.get());
  EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, 64U);
  EXPECT_EQ(std::memcmp(to.bytes().data(), from.bytes().data(), 64), 0);
}

// IA-ATTR-1, PRV-ATTR-5, PRV-ATTR-6, REG-TBL-2.
REGISTRY_TEST(RegistryOwn, AnAdapterMayHaveAnotherName) {
  const StaticRegistryText conf(entry_line("my-nic", kOurselves, "soft-lo") +
                                entry_line("my-nic", kOurselves, "soft", {.api = "u1.1", .safety = "threadsafe"}) +
                                entry_line("soft-lo", kOurselves) +
                                entry_line("safe-nic", kOurselves, "soft-lo", {.safety = "threadsafe"}));
  EXPECT_THAT(listed_names(), ElementsAre("my-nic", "my-nic", "soft-lo", "safe-nic"));
  const Opened plain = open_ia("my-nic");
  const Opened safe = open_ia("my-nic", 1, 0, DAT_TRUE);
  const Opened same_name = open_ia("soft-lo");
  ASSERT_THAT(plain.rc, Succeeds());
  ASSERT_THAT(safe.rc, Succeeds());
  ASSERT_THAT(same_name.rc, Succeeds());
  EXPECT_EQ(adapter_name(plain.ia), "my-nic");
  EXPECT_EQ(adapter_name(safe.ia), "my-nic");
  EXPECT_EQ(adapter_name(same_name.ia), "soft-lo");
  EXPECT_STREQ(DAT_HANDLE_TO_PROVIDER(plain.ia)->device_name, "my-nic");
  EXPECT_EQ(provider_attributes(plain.ia).dapl_version_minor, 2U);
  EXPECT_EQ(provider_attributes(plain.ia).is_thread_safe, DAT_FALSE);
  EXPECT_EQ(provider_attributes(safe.ia).dapl_version_minor, 1U);
  EXPECT_EQ(provider_attributes(safe.ia).is_thread_safe, DAT_TRUE);
  for (const Opened& opened : {plain, safe, same_name}) {
    EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_HANDLE));
  }
  send_a_message("safe-nic");
}

// D2-CONF-4: one line for all names that begin alike, none of which is listed. A line with the whole name, a
// registration and a built-in adapter go before it.
REGISTRY_TEST(RegistryOwn, APatternStandsForEveryNameThatBeginsSo) {
  const StaticRegistryText conf(entry_line("*", kOurselves, "soft-no-such-device") +
                                entry_line("ofa-v2-*", kOurselves, "soft-lo") +
                                entry_line("ofa-v2-whole", kOurselves, "soft-no-such-device") +
                                entry_line("only-two-*", kOurselves, "soft-lo", {.api = "u2.0"}));
  EXPECT_THAT(listed_names(), ElementsAre("ofa-v2-whole"));
  for (int round = 0; round < 2; ++round) {
    for (const char* name : {"ofa-v2-ib0", "ofa-v2-mlx4_0-1u", "ofa-v2-", "RO_AWARE_ofa-v2-ib1"}) {
      const Opened opened = open_ia(name);
      ASSERT_THAT(opened.rc, Succeeds()) << name;
      EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    }
  }
  const Opened named = open_ia("ofa-v2-ib0");
  ASSERT_THAT(named.rc, Succeeds());
  EXPECT_EQ(adapter_name(named.ia), "ofa-v2-ib0");
  EXPECT_THAT(dat_ia_close(named.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  const Opened built_in = open_ia("soft-lo");
  ASSERT_THAT(built_in.rc, Succeeds()) << "not the line *";
  EXPECT_THAT(dat_ia_close(built_in.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  for (const char* name : {"ofa-v2-whole", "ofa-v1-ib0", "only-two-x"}) {
    EXPECT_THAT(open_ia(name).rc, HasType(DAT_PROVIDER_NOT_FOUND)) << name;
  }
}

// D2-CONF-4, IA-OPEN-25: what cannot be told to be no built-in adapter is not taken by a pattern, neither then nor for
// the time when it can be told.
REGISTRY_TEST(RegistryOwn, APatternTakesNoBuiltInAdapterForWantOfDescriptors) {
  if (built_with_sanitizer()) return;  // that needs a descriptor to look at memory, and calls it bad
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("*", provider_library("probe"), log.instance_data()));
  close_now(open_ia("soft-lo"));
  for (const char* name : {"soft-lo", "verbs-of-no-host"}) {
    const FewDescriptors none(0);
    EXPECT_THAT(open_ia(name).rc, HasType(DAT_INSUFFICIENT_RESOURCES)) << name;
  }
  const Opened built_in = open_ia("soft-lo");
  ASSERT_THAT(built_in.rc, Succeeds());
  EXPECT_EQ(adapter_name(built_in.ia), "soft-lo");
  close_now(built_in);
  EXPECT_THAT(log.lines(), testing::IsEmpty()) << "the Provider of the line * was loaded";
  close_now(open_ia("verbs-of-no-host"));
  EXPECT_EQ(log.count("open verbs-of-no-host"), 1);
}

// Whether this process could leave for a network of its own, whose loopback device is down.
bool leave_for_an_empty_network() {
  return ::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

void bring_loopback_up() {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::ioctl(socket, SIOCSIFFLAGS, &request), 0);
  ::close(socket);
}

// D2-CONF-4: a name that a pattern has stood for is no whole line of dat.conf: its device may come.
REGISTRY_TEST(RegistryOwn, APatternGivesANameBackToABuiltInAdapterThatComes) {
  if (!leave_for_an_empty_network()) return;  // that is not permitted here
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("*", provider_library("probe"), log.instance_data()));
  const Opened before = open_ia("soft-lo");
  ASSERT_THAT(before.rc, Succeeds());
  ASSERT_EQ(log.count("open soft-lo"), 1) << "the device is up";
  close_now(before);
  bring_loopback_up();
  const Opened built_in = open_ia("soft-lo");
  ASSERT_THAT(built_in.rc, Succeeds());
  EXPECT_EQ(log.count("init soft-lo"), 1) << "the Provider of the line * was loaded again";
  EXPECT_EQ(log.count("open soft-lo"), 1);
  close_now(built_in);
}

// RES-8, RES-10: adapters that the host has not got, and versions that we are no Provider of.
REGISTRY_TEST(RegistryOwn, WhatWeCannotServeIsNotFound) {
  const StaticRegistryText conf(entry_line("no-device", kOurselves, "soft-no-such-device") +
                                entry_line("no-default", kOurselves) +
                                entry_line("newer", kOurselves, "soft-lo", {.api = "u1.3"}) +
                                entry_line("other", kOurselves, "soft-lo", {.api = "u2.0"}));
  for (const char* name : {"no-device", "no-default", "newer"}) {
    EXPECT_THAT(open_ia(name).rc, HasType(DAT_PROVIDER_NOT_FOUND)) << name;
  }
  EXPECT_THAT(open_ia("other", 2, 0).rc, HasType(DAT_PROVIDER_NOT_FOUND));
}

// RES-12: after a failed open the name opens as before.
REGISTRY_TEST(RegistryOwn, AFailedOpenLeavesNothingBehind) {
  const StaticRegistryText conf(entry_line("my-nic", kOurselves, "soft-lo"));
  for (int round = 0; round < 2; ++round) {
    std::string name = "my-nic";
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    EXPECT_THAT(dat_ia_open(name.data(), -1, &async_evd, &ia), HasType(DAT_INVALID_PARAMETER));
    EXPECT_EQ(ia, DAT_HANDLE_NULL);
    const Opened opened = open_ia("my-nic");
    ASSERT_THAT(opened.rc, Succeeds());
    EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  }
}

// OBJ-7, HND-9: a complete Provider that is not this library but a copy of it. Every call of a connection's life goes
// through the first library's functions into the copy.
REGISTRY_TEST(RegistryOwn, ACopyOfTheLibraryIsAForeignProvider) {
  const TestFolder folder;
  const std::string copy = folder.path("libcopy.so");
  std::filesystem::copy_file(std::filesystem::canonical(ANYDAT_LIBDAT), copy);
  const StaticRegistryText conf(entry_line("copy-nic", copy, "soft-lo") +
                                entry_line("copy-nic", copy, "soft-lo", {.safety = "threadsafe"}));
  const Opened theirs = open_ia("copy-nic");
  const Opened ours = open_ia("soft-lo");
  ASSERT_THAT(theirs.rc, Succeeds());
  ASSERT_THAT(ours.rc, Succeeds());
  EXPECT_NE(DAT_HANDLE_TO_PROVIDER(theirs.ia)->ia_query_func, DAT_HANDLE_TO_PROVIDER(ours.ia)->ia_query_func);
  EXPECT_EQ(adapter_name(theirs.ia), "copy-nic");
  // HND-3 reaches through: the copy refuses what is no EVD, and we refuse the copy's objects.
  EXPECT_THAT(dat_evd_enable(theirs.ia), HasType(DAT_INVALID_HANDLE));
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_pz_create(theirs.ia, &pz), Succeeds());
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ep_create(ours.ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr, &ep),
              HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_pz_free(pz), Succeeds());
  EXPECT_THAT(dat_pz_free(pz), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ia_close(ours.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(dat_ia_close(theirs.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(dat_ia_close(theirs.ia, DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_HANDLE));
  send_a_message("copy-nic");
}

}  // namespace
}  // namespace anydat::test
