// SPDX-License-Identifier: BSD-3-Clause
// dat_registry_list_providers (REG-LIST-1..16).
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "conformance/registry_fixture.h"
#include "conformance/registry_provider.h"

namespace anydat::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kThree = "# three entries\n" + entry_line("one", "libnone.so") +
                           entry_line("two", "libnone.so", "", {.api = "u2.0", .safety = "threadsafe"}) +
                           entry_line(std::string(255, 'n'), "libnone.so", "", {.api = "u1.1"});

// REG-LIST-1, REG-LIST-2, REG-LIST-3.
REGISTRY_TEST(RegistryList, GivesEveryEntryOfTheStaticRegistryInItsOrder) {
  const StaticRegistryText conf(kThree);
  DAT_PROVIDER_INFO infos[4];
  std::memset(infos, 0x5a, sizeof infos);
  const DAT_PROVIDER_INFO untouched = infos[3];
  // What is behind the elements that are filled is not read either: no memory is there.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + page, page, PROT_NONE), 0);
  auto** const list = reinterpret_cast<DAT_PROVIDER_INFO**>(static_cast<char*>(memory) + page) - 3;
  for (int i = 0; i < 3; ++i) {
    list[i] = &infos[i];
  }
  DAT_COUNT count = -1;
  ASSERT_THAT(dat_registry_list_providers(4, &count, list), Succeeds());
  ASSERT_EQ(count, 3);
  EXPECT_STREQ(infos[0].ia_name, "one");
  EXPECT_EQ(infos[0].dapl_version_major, 1U);
  EXPECT_EQ(infos[0].dapl_version_minor, 2U);
  EXPECT_EQ(infos[0].is_thread_safe, DAT_FALSE);
  EXPECT_STREQ(infos[1].ia_name, "two");
  EXPECT_EQ(infos[1].dapl_version_major, 2U);
  EXPECT_EQ(infos[1].dapl_version_minor, 0U);
  EXPECT_EQ(infos[1].is_thread_safe, DAT_TRUE);
  EXPECT_EQ(infos[2].ia_name, std::string(255, 'n'));
  EXPECT_EQ(infos[2].dapl_version_minor, 1U);
  EXPECT_EQ(std::memcmp(&infos[3], &untouched, sizeof untouched), 0);
}

// REG-LIST-4, REG-LIST-5, REG-LIST-6, REG-LIST-7, REG-LIST-8.
REGISTRY_TEST(RegistryList, RefusesAListThatIsTooSmallAndTellsTheNumber) {
  const StaticRegistryText conf(kThree);
  DAT_PROVIDER_INFO infos[3];
  DAT_PROVIDER_INFO* list[]{&infos[0], &infos[1], &infos[2]};
  const auto expect_refused = [](DAT_COUNT max, DAT_PROVIDER_INFO** pointers) {
    DAT_COUNT count = -1;
    EXPECT_THAT(dat_registry_list_providers(max, &count, pointers), HasType(DAT_INVALID_PARAMETER)) << max;
    EXPECT_EQ(count, 3) << max;
  };
  expect_refused(2, list);
  expect_refused(0, list);
  expect_refused(0, nullptr);
  expect_refused(3, nullptr);
  for (int missing = 0; missing < 3; ++missing) {
    DAT_PROVIDER_INFO* with_a_gap[]{&infos[0], &infos[1], &infos[2]};
    with_a_gap[missing] = nullptr;
    expect_refused(3, with_a_gap);
  }
  expect_refused(-1, list);
  expect_refused(INT_MIN, list);
  EXPECT_THAT(dat_registry_list_providers(3, nullptr, list), HasType(DAT_INVALID_PARAMETER));
  DAT_COUNT count = -1;
  EXPECT_THAT(dat_registry_list_providers(3, &count, list), Succeeds()) << "exactly enough";
}

// A registry that is missing is told by this call alone; built-in adapters open.
void expect_missing_registry() {
  DAT_COUNT count = -1;
  DAT_PROVIDER_INFO info;
  DAT_PROVIDER_INFO* list[]{&info};
  EXPECT_THAT(dat_registry_list_providers(1, &count, list), HasType(DAT_INTERNAL_ERROR));
  EXPECT_EQ(count, 0);
  const Opened builtin = open_ia("soft-lo");
  ASSERT_THAT(builtin.rc, Succeeds());
  EXPECT_THAT(dat_ia_close(builtin.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("mine")), Succeeds());
  const Opened mine = open_ia("mine");
  ASSERT_THAT(mine.rc, Succeeds());
  EXPECT_THAT(dat_ia_close(mine.ia, DAT_CLOSE_DEFAULT), Succeeds());
}

// REG-LIST-9, CONF-4, CONF-5
REGISTRY_TEST(RegistryList, FailsWhenTheStaticRegistryIsMissing) {
  setenv("DAT_OVERRIDE", "/nonexistent/dat.conf", 1);
  expect_missing_registry();
}

REGISTRY_TEST(RegistryList, FailsWhenDatOverrideIsEmpty) {
  setenv("DAT_OVERRIDE", "", 1);
  expect_missing_registry();
}

// REG-LIST-14, CONF-7.
REGISTRY_TEST(RegistryList, OfAnEmptyFileHasNoEntry) {
  const StaticRegistryText conf("\n# nothing here\n");
  DAT_PROVIDER_INFO info;
  DAT_PROVIDER_INFO* list[]{&info};
  DAT_COUNT count = -1;
  EXPECT_THAT(dat_registry_list_providers(1, &count, list), Succeeds());
  EXPECT_EQ(count, 0);
  EXPECT_THAT(dat_registry_list_providers(0, &count, nullptr), HasType(DAT_INVALID_PARAMETER)) << "REG-LIST-5";
  EXPECT_EQ(count, 0);
  EXPECT_THAT(dat_registry_list_providers(1, &count, nullptr), HasType(DAT_INVALID_PARAMETER)) << "REG-LIST-6";
  const Opened builtin = open_ia("soft-lo");
  ASSERT_THAT(builtin.rc, Succeeds()) << "it opens without being listed";
  EXPECT_THAT(dat_ia_close(builtin.ia, DAT_CLOSE_DEFAULT), Succeeds());
}

// REG-LIST-12, REG-LIST-10, REG-LIST-11.
REGISTRY_TEST(RegistryList, LoadsNothingAndChangesNothing) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  EXPECT_THAT(listed_names(), ElementsAre("net0"));
  EXPECT_THAT(listed_names(), ElementsAre("net0"));
  EXPECT_THAT(log.lines(), IsEmpty());
  EXPECT_EQ(dlopen(provider_library("probe").c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

// REG-LIST-13.
REGISTRY_TEST(RegistryList, LeavesOutProvidersThatRegisteredThemselves) {
  const StaticRegistryText conf(entry_line("net0", "libnone.so"));
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("mine")), Succeeds());
  EXPECT_THAT(listed_names(), ElementsAre("net0"));
}

// REG-LIST-15, IA-OPEN-24: what is listed for a program opens for it. The tuple is the program's except for the minor
// version.
void expect_listed_entries_open() {
  for (const DAT_PROVIDER_INFO& info : listed()) {
    if (info.dapl_version_major != 1 || info.dapl_version_minor < 1 || info.is_thread_safe != DAT_FALSE) {
      continue;
    }
    for (const DAT_UINT32 minor : {1U, info.dapl_version_minor}) {
      const Opened opened = open_ia(info.ia_name, 1, minor);
      ASSERT_THAT(opened.rc, Succeeds()) << info.ia_name;
      EXPECT_EQ(adapter_name(opened.ia), info.ia_name);
      EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    }
  }
}

REGISTRY_TEST(RegistryList, NamesAdaptersThatOpen) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()) +
                                entry_line("net1", provider_library("probe"), log.instance_data(), {.api = "u1.1"}) +
                                entry_line("net2", "libnone.so", "", {.api = "u2.0"}) +
                                entry_line("net3", "libnone.so", "", {.safety = "threadsafe"}));
  expect_listed_entries_open();
  EXPECT_EQ(log.count("close net0"), 2);
  EXPECT_EQ(log.count("close net1"), 2);
}

// Without DAT_OVERRIDE the built-in adapters are part of the static registry, each of them once (REG-LIST-15,
// PRV-ATTR-6). A program that asks for thread safety gets it from the same adapters.
REGISTRY_TEST(RegistryList, HasTheBuiltInAdaptersWithoutAnyFile) {
  unsetenv("DAT_OVERRIDE");
  EXPECT_THAT(listed_names(), Contains("soft").Times(1));
  EXPECT_THAT(listed_names(), Contains("soft-lo").Times(1));
  for (const DAT_PROVIDER_INFO& info : listed()) {
    if (std::string_view(info.ia_name).starts_with("soft")) {
      EXPECT_EQ(info.dapl_version_major, 1U);
      EXPECT_EQ(info.dapl_version_minor, 2U);
      EXPECT_EQ(info.is_thread_safe, DAT_FALSE);
    }
  }
  for (const char* name : {"soft", "soft-lo"}) {
    for (const DAT_BOOLEAN thread_safe : {DAT_FALSE, DAT_TRUE}) {
      for (const DAT_UINT32 minor : {0U, 1U, 2U}) {
        const Opened opened = open_ia(name, 1, minor, thread_safe);
        ASSERT_THAT(opened.rc, Succeeds()) << name;
        DAT_PROVIDER_ATTR attr{};
        ASSERT_THAT(dat_ia_query(opened.ia, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), Succeeds());
        EXPECT_EQ(attr.is_thread_safe, thread_safe);
        EXPECT_EQ(attr.dapl_version_major, 1U) << "PRV-ATTR-5";
        EXPECT_EQ(attr.dapl_version_minor, 2U) << "PRV-ATTR-5";
        EXPECT_EQ(adapter_name(opened.ia), name);
        EXPECT_STREQ(DAT_HANDLE_TO_PROVIDER(opened.ia)->device_name, name) << "REG-TBL-2";
        EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
      }
    }
  }
}

// REG-LIST-16.
REGISTRY_TEST(RegistryList, IsSafeFromManyThreads) {
  const StaticRegistryText conf(kThree);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong] {
      for (int i = 0; i < 200; ++i) {
        wrong += listed().size() != 3;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace anydat::test
