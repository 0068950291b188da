// SPDX-License-Identifier: BSD-3-Clause
// dat_registry_add_provider and dat_registry_remove_provider (REG-ADD-1..11, REG-REM-1..8, THR-8).
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "conformance/registry_fixture.h"
#include "conformance/registry_provider.h"
#include "support/few_descriptors.h"
#include "support/patience.h"

namespace anydat::test {
namespace {

// REG-ADD-1, REG-ADD-2, REG-ADD-9: the structure and the open function are copied.
REGISTRY_TEST(RegistryAdd, WhatIsAddedOpens) {
  FakeProvider provider;
  DAT_PROVIDER_INFO info = provider_info("net0");
  ASSERT_THAT(provider.add(info), Succeeds());
  std::memset(&info, 0, sizeof info);
  provider.table.ia_open_func = nullptr;
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(provider.opened_name, "net0");
  close_now(opened);
  EXPECT_EQ(provider.closes, 1);
}

// REG-ADD-3, REG-ADD-4, REG-ADD-5, ruling A22.
REGISTRY_TEST(RegistryAdd, ATupleIsRegisteredOnce) {
  FakeProvider first;
  FakeProvider second;
  ASSERT_THAT(first.add(provider_info("net0")), Succeeds());
  EXPECT_THAT(second.add(provider_info("net0")), HasType(DAT_PROVIDER_ALREADY_REGISTERED));
  EXPECT_THAT(first.add(provider_info("net0")), HasType(DAT_PROVIDER_ALREADY_REGISTERED));
  EXPECT_THAT(first.add(provider_info("net1")), Succeeds());
  EXPECT_THAT(second.add(provider_info("net0", 2, 2)), Succeeds());
  EXPECT_THAT(second.add(provider_info("net0", 1, 3)), Succeeds());
  EXPECT_THAT(second.add(provider_info("net0", 1, 2, DAT_TRUE)), Succeeds());
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(first.opens, 1) << "the first registration is intact";
  close_now(opened);
}

// REG-ADD-4: built-in adapters count as registered.
REGISTRY_TEST(RegistryAdd, ABuiltInAdapterKeepsItsName) {
  FakeProvider provider;
  for (const DAT_BOOLEAN thread_safe : {DAT_FALSE, DAT_TRUE}) {
    EXPECT_THAT(provider.add(provider_info("soft-lo", 1, 2, thread_safe)), HasType(DAT_PROVIDER_ALREADY_REGISTERED));
    EXPECT_THAT(provider.remove(provider_info("soft-lo", 1, 2, thread_safe)), HasType(DAT_INVALID_PARAMETER));
  }
  const Opened opened = open_ia("soft-lo");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(provider.opens, 0);
  close_now(opened);
}

// REG-ADD-4, REG-ADD-8: nor is its name given away while it cannot be looked for. Others are.
REGISTRY_TEST(RegistryAdd, ABuiltInAdapterKeepsItsNameForWantOfDescriptors) {
  if (built_with_sanitizer()) return;  // that needs a descriptor to look at memory, and calls it bad
  FakeProvider provider;
  const StaticRegistryText conf(entry_line("soft-lo", provider_library("probe"), "", {.safety = "threadsafe"}));
  close_now(open_ia("soft-lo"));
  {
    const FewDescriptors none(0);
    for (const char* name : {"soft-lo", "soft-of-no-host", "verbs-of-no-host"}) {
      EXPECT_THAT(provider.add(provider_info(name)), HasType(DAT_INSUFFICIENT_RESOURCES)) << name;
    }
    // Those that no adapter of ours has in any case: other versions, a line of dat.conf, another name.
    EXPECT_THAT(provider.add(provider_info("soft-lo", 1, 1)), Succeeds());
    EXPECT_THAT(provider.add(provider_info("soft-lo", 1, 3)), Succeeds());
    EXPECT_THAT(provider.add(provider_info("soft-lo", 1, 2, DAT_TRUE)), Succeeds());
    EXPECT_THAT(provider.add(provider_info("net0")), Succeeds());
    EXPECT_THAT(provider.add(provider_info("soft")), HasType(DAT_PROVIDER_ALREADY_REGISTERED));
    EXPECT_THAT(open_ia("soft-lo").rc, HasType(DAT_INSUFFICIENT_RESOURCES)) << "ours may serve better than 1.3";
    close_now(open_ia("soft-lo", 1, 1));
    EXPECT_EQ(provider.opens, 1);
  }
  EXPECT_THAT(provider.add(provider_info("soft-lo")), HasType(DAT_PROVIDER_ALREADY_REGISTERED));
  EXPECT_THAT(provider.add(provider_info("verbs-of-no-host")), Succeeds());
  close_now(open_ia("soft-lo"));
  EXPECT_EQ(provider.opens, 1);
}

// REG-ADD-6, REG-ADD-7.
REGISTRY_TEST(RegistryAdd, ChecksItsArguments) {
  FakeProvider provider;
  const DAT_PROVIDER_INFO good = provider_info("net0");
  EXPECT_THAT(dat_registry_add_provider(nullptr, &good), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_registry_add_provider(&provider.table, nullptr), HasType(DAT_INVALID_PARAMETER));
  const DAT_PROVIDER_INFO nameless = provider_info("");
  EXPECT_THAT(dat_registry_add_provider(&provider.table, &nameless), HasType(DAT_INVALID_PARAMETER));
  DAT_PROVIDER_INFO endless = good;
  std::memset(endless.ia_name, 'n', sizeof endless.ia_name);
  EXPECT_THAT(dat_registry_add_provider(&provider.table, &endless), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_registry_remove_provider(&provider.table, &endless), HasType(DAT_INVALID_PARAMETER));
  const DAT_PROVIDER empty{};
  EXPECT_THAT(dat_registry_add_provider(&empty, &good), HasType(DAT_INVALID_PARAMETER)) << "nothing opens it";
  EXPECT_THAT(open_ia("net0").rc, HasType(DAT_PROVIDER_NOT_FOUND));
}

// REG-ADD-8.
REGISTRY_TEST(RegistryAdd, TheRegistryIsFullSomeTime) {
  FakeProvider provider;
  DAT_RETURN rc = DAT_SUCCESS;
  int count = 0;
  while (rc == DAT_SUCCESS && count < 100'000) {
    rc = provider.add(provider_info("net" + std::to_string(count++)));
  }
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_GT(count, 100);
  EXPECT_THAT(provider.remove(provider_info("net0")), Succeeds());
  EXPECT_THAT(provider.add(provider_info("another")), Succeeds());
}

// REG-ADD-11, REG-REM-1, THR-8, IA-OPEN-27.
REGISTRY_TEST(RegistryAdd, IsSafeFromManyThreads) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<FakeProvider>> providers;
  for (int t = 0; t < 4; ++t) {
    FakeProvider& provider = *providers.emplace_back(std::make_unique<FakeProvider>());
    threads.emplace_back([&wrong, &provider, t] {
      const std::string name = "net" + std::to_string(t);
      const DAT_PROVIDER_INFO info = provider_info(name);
      for (int i = 0; i < 200; ++i) {
        wrong += provider.add(info) != DAT_SUCCESS;
        const Opened opened = open_ia(name);
        wrong += opened.rc != DAT_SUCCESS;
        wrong += DAT_GET_TYPE(provider.remove(info)) != DAT_PROVIDER_IN_USE;
        wrong += dat_pz_free(opened.ia) != FakeProvider::answer_of(offsetof(DAT_PROVIDER, pz_free_func));
        wrong += dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT) != DAT_SUCCESS;
        wrong += provider.remove(info) != DAT_SUCCESS;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

// REG-REM-1.
REGISTRY_TEST(RegistryRemove, ExactlyTheTupleIsGone) {
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("net0")), Succeeds());
  ASSERT_THAT(provider.add(provider_info("net0", 1, 1)), Succeeds());
  EXPECT_THAT(provider.remove(provider_info("net0")), Succeeds());
  EXPECT_THAT(open_ia("net0").rc, HasType(DAT_PROVIDER_NOT_FOUND));
  const Opened opened = open_ia("net0", 1, 1);
  ASSERT_THAT(opened.rc, Succeeds());
  close_now(opened);
  EXPECT_THAT(provider.add(provider_info("net0")), Succeeds()) << "it may come back";
}

// REG-REM-2, REG-REM-6, RES-11, ruling A26.
REGISTRY_TEST(RegistryRemove, IsRefusedWhileAnInstanceIsOpen) {
  FakeProvider provider;
  const DAT_PROVIDER_INFO info = provider_info("net0");
  ASSERT_THAT(provider.add(info), Succeeds());
  const Opened first = open_ia("net0");
  const Opened second = open_ia("net0");
  ASSERT_THAT(second.rc, Succeeds());
  EXPECT_THAT(provider.remove(info), HasType(DAT_PROVIDER_IN_USE));
  close_now(first);
  EXPECT_THAT(provider.remove(info), HasType(DAT_PROVIDER_IN_USE));
  EXPECT_EQ(dat_pz_free(second.ia), FakeProvider::answer_of(offsetof(DAT_PROVIDER, pz_free_func))) << "nothing changed";
  provider.close_result = static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_STATE;
  EXPECT_THAT(dat_ia_close(second.ia, DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(provider.remove(info), HasType(DAT_PROVIDER_IN_USE)) << "it was not closed";
  provider.close_result = DAT_SUCCESS;
  close_now(second);
  EXPECT_THAT(provider.remove(info), Succeeds());
}

// REG-REM-3, REG-REM-4, REG-REM-5.
REGISTRY_TEST(RegistryRemove, ChecksItsArguments) {
  FakeProvider provider;
  FakeProvider other;
  const DAT_PROVIDER_INFO info = provider_info("net0");
  EXPECT_THAT(provider.remove(info), HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(provider.add(info), Succeeds());
  EXPECT_THAT(dat_registry_remove_provider(nullptr, &info), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_registry_remove_provider(&provider.table, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(other.remove(info), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(provider.remove(provider_info("net0", 2, 2)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(provider.remove(provider_info("net0", 1, 1)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(provider.remove(provider_info("net0", 1, 2, DAT_TRUE)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(provider.remove(info), Succeeds());
  EXPECT_THAT(provider.remove(info), HasType(DAT_INVALID_PARAMETER));
}

// An instance closed through the table, as the DAT_IA_CLOSE macro does it, is noticed at the latest when the Provider
// gives its handle out again: here it does so at once.
DAT_RETURN open_the_same(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE* ia) {
  static FakeProvider provider;
  static FakeProvider::Object object = provider.object();
  *ia = &object;
  return DAT_SUCCESS;
}

REGISTRY_TEST(RegistryRemove, AHandleThatComesAgainEndsTheOldUse) {
  FakeProvider provider;
  provider.table.ia_open_func = open_the_same;
  const DAT_PROVIDER_INFO info = provider_info("net0");
  ASSERT_THAT(provider.add(info), Succeeds());
  const Opened first = open_ia("net0");
  const Opened second = open_ia("net0");
  ASSERT_EQ(first.ia, second.ia);
  EXPECT_THAT(provider.remove(info), HasType(DAT_PROVIDER_IN_USE));
  auto& object = *static_cast<FakeProvider::Object*>(second.ia);
  object.owner->table.ia_close_func = [](DAT_IA_HANDLE, DAT_CLOSE_FLAGS) -> DAT_RETURN { return DAT_SUCCESS; };
  close_now(second);
  EXPECT_THAT(provider.remove(info), Succeeds());
}

}  // namespace
}  // namespace anydat::test
