// SPDX-License-Identifier: BSD-3-Clause
// How dat_ia_open finds the Provider of a name (RES-1..12) and what it asks of its arguments (IA-OPEN-21..30).
#include <dlfcn.h>

#include <cstdlib>

#include "conformance/registry_fixture.h"
#include "conformance/registry_provider.h"

namespace anydat::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

void expect_not_found(const Opened& opened, DAT_RETURN subtype) {
  EXPECT_THAT(opened.rc, AllOf(HasType(DAT_PROVIDER_NOT_FOUND), HasSubtype(subtype)));
  EXPECT_EQ(opened.ia, DAT_HANDLE_NULL);
  EXPECT_EQ(opened.async_evd, DAT_HANDLE_NULL);
}

// RES-1, RES-2, RES-3 among Providers that registered themselves.
REGISTRY_TEST(RegistryOpen, TakesTheEqualOrTheNearestLargerMinor) {
  const StaticRegistryText conf("");
  FakeProvider minor1;
  FakeProvider minor4;
  FakeProvider minor3;
  for (auto& [provider, minor] : {std::pair<FakeProvider&, DAT_UINT32>{minor1, 1}, {minor4, 4}, {minor3, 3}}) {
    ASSERT_THAT(provider.add(provider_info("net", 1, minor)), Succeeds());
  }
  const auto opens_through = [](DAT_UINT32 minor, const FakeProvider& provider) {
    const Opened opened = open_ia("net", 1, minor);
    EXPECT_THAT(opened.rc, Succeeds()) << minor;
    const bool same = *static_cast<const DAT_PROVIDER**>(opened.ia) == &provider.table;
    close_now(opened);
    return same;
  };
  EXPECT_TRUE(opens_through(0, minor1));
  EXPECT_TRUE(opens_through(1, minor1));
  EXPECT_TRUE(opens_through(2, minor3));
  EXPECT_TRUE(opens_through(3, minor3));
  EXPECT_TRUE(opens_through(4, minor4));
  expect_not_found(open_ia("net", 1, 5), DAT_MINOR_NOT_FOUND);
}

// RES-4, REG-INIT-2, REG-INIT-3.
REGISTRY_TEST(RegistryOpen, LoadsTheLibraryOfTheStaticEntry) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data("\\\"a  b\\\"")));
  EXPECT_THAT(log.lines(), IsEmpty());
  const Opened opened = open_ia("net0", 1, 1);  // the Provider gets the entry's version, not the request's
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(adapter_name(opened.ia), "net0");
  const Opened again = open_ia("net0");
  ASSERT_THAT(again.rc, Succeeds());
  EXPECT_NE(again.ia, opened.ia) << "IA-OPEN-1";
  EXPECT_THAT(log.lines(), ElementsAre("init net0 1.2 nonthreadsafe \"a  b\"", "open net0", "open net0"));
  close_now(again);
  close_now(opened);
}

// RES-5: the static entry is loaded, and yet a dynamic registration that matches better is the one to open.
REGISTRY_TEST(RegistryOpen, OnlyTheDynamicRegistryOpens) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("net0", 1, 1)), Succeeds());
  const Opened opened = open_ia("net0", 1, 1);
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(provider.opens, 1);
  EXPECT_EQ(log.count("init net0 1.2"), 1) << "RES-4";
  EXPECT_EQ(log.count("open"), 0);
  EXPECT_EQ(log.count("unloaded"), 1) << "it is of no use to anybody";
  close_now(opened);
}

// RES-6, RES-7 (a symbol that cannot be bound is found at loading), CONF-25.
REGISTRY_TEST(RegistryOpen, TriesTheLibrariesOfAnEntryInTurn) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", "/nonexistent/libnone.so") +
                                entry_line("net0", provider_library("probe_unresolved"), log.instance_data()) +
                                entry_line("net0", provider_library("probe"), log.instance_data("third")) +
                                entry_line("net0", provider_library("probe_other"), log.instance_data("fourth")));
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_THAT(log.lines(), ElementsAre("init net0 1.2 nonthreadsafe third", "open net0"));
  EXPECT_EQ(dlopen(provider_library("probe_other").c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
  close_now(opened);
}

// RES-7.
REGISTRY_TEST(RegistryOpen, LoadsLibrariesWithGlobalVisibility) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "probe_gate"), nullptr);
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_NE(dlsym(RTLD_DEFAULT, "probe_gate"), nullptr);
  close_now(opened);
}

// RES-8, REG-INIT-6; and RES-6: no other library is tried when one has loaded. The library depends on libdat, which
// exports the missing function; that one does not count.
REGISTRY_TEST(RegistryOpen, ALibraryThatRegistersNothingIsNoProvider) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("soft-lo", provider_library("probe_no_init"), log.instance_data()) +
                                entry_line("soft-lo", provider_library("probe"), log.instance_data()) +
                                entry_line("net1", provider_library("probe"), log.instance_data("silent")) +
                                entry_line("net1", provider_library("probe_other"), log.instance_data()));
  expect_not_found(open_ia("soft-lo"), DAT_NAME_NOT_REGISTERED);
  EXPECT_THAT(log.lines(), IsEmpty());
  expect_not_found(open_ia("net1"), DAT_NAME_NOT_REGISTERED);
  // REG-FINI-2: it is finalised before it is unloaded, and the next attempt begins anew.
  expect_not_found(open_ia("net1"), DAT_NAME_NOT_REGISTERED);
  EXPECT_THAT(log.lines(),
              ElementsAre("init net1 1.2 nonthreadsafe silent", "fini net1 1.2 nonthreadsafe", "unloaded",
                          "init net1 1.2 nonthreadsafe silent", "fini net1 1.2 nonthreadsafe", "unloaded"));
}

// RES-9.
REGISTRY_TEST(RegistryOpen, AProviderThatIsThereOpensWhateverTheFileSays) {
  const StaticRegistryText conf(entry_line("net0", "/nonexistent/libnone.so") +
                                entry_line("net1", "/nonexistent/libnone.so", "", {.api = "u1.3"}));
  FakeProvider provider;
  for (const char* name : {"net0", "net1"}) {
    ASSERT_THAT(provider.add(provider_info(name)), Succeeds());
    const Opened opened = open_ia(name);
    ASSERT_THAT(opened.rc, Succeeds()) << name;
    close_now(opened);
  }
}

// RES-10, IA-OPEN-23, for names of the static registry, of the dynamic one, and of a built-in adapter.
REGISTRY_TEST(RegistryOpen, SaysHowFarTheRequestGot) {
  const StaticRegistryText conf(entry_line("net0", "/nonexistent/libnone.so"));
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("net1")), Succeeds());
  for (const char* name : {"nobody", "", "net", "net00", "NET1", "soft-no-such-device"}) {
    expect_not_found(open_ia(name), DAT_NAME_NOT_REGISTERED);
  }
  for (const char* name : {"net0", "net1", "soft-lo"}) {
    expect_not_found(open_ia(name, 2, 0), DAT_MAJOR_NOT_FOUND);
    expect_not_found(open_ia(name, 0, 0), DAT_MAJOR_NOT_FOUND);
    expect_not_found(open_ia(name, 1, 3), DAT_MINOR_NOT_FOUND);
  }
  for (const char* name : {"net0", "net1"}) {
    expect_not_found(open_ia(name, 1, 2, DAT_TRUE), DAT_THREAD_SAFETY_NOT_FOUND);
  }
  expect_not_found(open_ia("net0"), DAT_NAME_NOT_REGISTERED);  // known, and does not load
}

// An entry of a file takes the place of a built-in adapter, for its tuple.
REGISTRY_TEST(RegistryOpen, AnEntryOverridesTheBuiltInAdapterOfItsName) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("soft-lo", provider_library("probe"), log.instance_data()));
  const Opened probe = open_ia("soft-lo");
  ASSERT_THAT(probe.rc, Succeeds());
  EXPECT_EQ(log.count("open soft-lo"), 1);
  const Opened builtin = open_ia("soft-lo", 1, 2, DAT_TRUE);
  ASSERT_THAT(builtin.rc, Succeeds());
  EXPECT_EQ(log.count("open soft-lo"), 1);
  close_now(builtin);
  close_now(probe);
}

// RES-12, IA-OPEN-25, IA-OPEN-26: the Provider refuses, and has changed its OUT arguments before.
REGISTRY_TEST(RegistryOpen, AFailedOpenLeavesNothingBehind) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data("refuses")));
  for (int round = 0; round < 2; ++round) {
    const Opened opened = open_ia("net0");
    EXPECT_THAT(opened.rc, HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_EQ(opened.ia, DAT_HANDLE_NULL);
    EXPECT_EQ(opened.async_evd, DAT_HANDLE_NULL);
  }
  EXPECT_THAT(log.lines(), ElementsAre(StartsWith("init net0"), "open net0", StartsWith("fini net0"), "unloaded",
                                       StartsWith("init net0"), "open net0", StartsWith("fini net0"), "unloaded"));
  FakeProvider provider;
  provider.open_result = FakeProvider::answer_of(0);
  const DAT_PROVIDER_INFO info = provider_info("net1");
  ASSERT_THAT(provider.add(info), Succeeds());
  DAT_EVD_HANDLE async_evd = DAT_EVD_ASYNC_EXISTS;
  auto ia = reinterpret_cast<DAT_IA_HANDLE>(&provider);
  std::string name = "net1";
  EXPECT_EQ(dat_ia_open(name.data(), 8, &async_evd, &ia), FakeProvider::answer_of(0));
  EXPECT_EQ(async_evd, DAT_EVD_ASYNC_EXISTS);
  EXPECT_EQ(ia, DAT_HANDLE_NULL);
  EXPECT_THAT(provider.remove(info), Succeeds()) << "no use is left";
}

// RES-12 for a Provider of ours: what it refuses is refused in the same way.
REGISTRY_TEST(RegistryOpen, AFailedOpenOfABuiltInAdapterLeavesNothingBehind) {
  std::string name = "soft-lo";
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  auto ia = reinterpret_cast<DAT_IA_HANDLE>(&async_evd);
  EXPECT_THAT(dat_ia_open(name.data(), 0, &async_evd, &ia), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(async_evd, DAT_HANDLE_NULL);
  EXPECT_EQ(ia, DAT_HANDLE_NULL);
}

// IA-OPEN-21, IA-OPEN-22.
REGISTRY_TEST(RegistryOpen, ChecksItsArgumentsBeforeItLooks) {
  const StaticRegistryText conf("");
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info(std::string(255, 'n'))), Succeeds());
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  std::string name(255, 'n');
  EXPECT_THAT(dat_ia_open(nullptr, 8, &async_evd, &ia), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ia_open(name.data(), 8, nullptr, &ia), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ia_open(name.data(), 8, &async_evd, nullptr), HasType(DAT_INVALID_PARAMETER));
  std::string too_long = name + "n";
  EXPECT_THAT(dat_ia_open(too_long.data(), 8, &async_evd, &ia), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(provider.opens, 0);
  ASSERT_THAT(dat_ia_open(name.data(), 8, &async_evd, &ia), Succeeds());
  EXPECT_EQ(provider.opened_name, name);
  EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_DEFAULT), Succeeds());
}

// IA-OPEN-29, ruling A28: first the name as it is, then without the prefix. IA-OPEN-30: it is never demanded.
REGISTRY_TEST(RegistryOpen, AcceptsTheRelaxedOrderingPrefix) {
  const StaticRegistryText conf("");
  const Opened stripped = open_ia("RO_AWARE_soft-lo");
  ASSERT_THAT(stripped.rc, Succeeds());
  EXPECT_EQ(adapter_name(stripped.ia), "soft-lo") << "IA-ATTR-1";
  close_now(stripped);

  FakeProvider literal;
  FakeProvider plain;
  ASSERT_THAT(plain.add(provider_info("net0")), Succeeds());
  const Opened before = open_ia("RO_AWARE_net0");
  ASSERT_THAT(before.rc, Succeeds());
  EXPECT_EQ(plain.opened_name, "net0");
  ASSERT_THAT(literal.add(provider_info("RO_AWARE_net0")), Succeeds());
  const Opened after = open_ia("RO_AWARE_net0");
  ASSERT_THAT(after.rc, Succeeds());
  EXPECT_EQ(literal.opened_name, "RO_AWARE_net0");
  close_now(before);
  close_now(after);

  expect_not_found(open_ia("RO_AWARE_"), DAT_NAME_NOT_REGISTERED);
  expect_not_found(open_ia("RO_AWARE_nobody"), DAT_NAME_NOT_REGISTERED);
  expect_not_found(open_ia("RO_AWARE_net0", 1, 3), DAT_MINOR_NOT_FOUND);
}

}  // namespace
}  // namespace anydat::test
