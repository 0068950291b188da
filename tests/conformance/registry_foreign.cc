// SPDX-License-Identifier: BSD-3-Clause
// Calls on the objects of other Providers: OBJ-7, HND-1..4, HND-9, REG-TBL-1, REG-TBL-3, RC-7, ruling A7.
#include <anydat/anydat.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "conformance/registry_fixture.h"
#include "conformance/registry_provider.h"

namespace anydat::test {
namespace {

// Calls with nothing but a handle; the fake Provider looks at no other argument, and our own calls look at the handle
// first (ARG-1).
template <typename... Rest>
DAT_RETURN call(DAT_RETURN (*function)(DAT_HANDLE, Rest...), DAT_HANDLE handle) {
  return function(handle, Rest{}...);
}

struct Call {
  std::string name;
  std::size_t slot_offset;
  DAT_RETURN (*with)(DAT_HANDLE handle);
};

// Every call on an object that is there.
const std::vector<Call>& all_calls() {
  static const std::vector<Call> calls{
#define ABI_SLOT(index, field, offset, type, function) \
  {#function, offset, [](DAT_HANDLE handle) { return call(&(function), handle); }},
#include "unit/abi_facts.inc"
  };
  return calls;
}

bool is_close(const Call& call) {
  return call.name == "dat_ia_close";  // which the fake Provider does, instead of telling its slot
}

const std::set<std::string> kCallsOnAnIa{
    "dat_ia_query",   "dat_ia_close",           "dat_cno_create",          "dat_evd_create",
    "dat_ep_create",  "dat_ep_create_with_srq", "dat_lmr_create",          "dat_lmr_sync_rdma_read",
    "dat_pz_create",  "dat_psp_create",         "dat_lmr_sync_rdma_write", "dat_psp_create_any",
    "dat_rsp_create", "dat_srq_create"};

// OBJ-7, HND-9, REG-TBL-1.
REGISTRY_TEST(RegistryForeign, EveryCallGoesToTheProviderOfItsObject) {
  FakeProvider provider;
  FakeProvider::Object object = provider.object();
  ASSERT_THAT(provider.add(provider_info("net0")), Succeeds());
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(all_calls().size(), 67U);
  for (const Call& each : all_calls()) {
    if (is_close(each)) {
      continue;
    }
    SCOPED_TRACE(each.name);
    EXPECT_EQ(each.with(opened.ia), FakeProvider::answer_of(each.slot_offset));
    if (kCallsOnAnIa.contains(each.name)) {
      // Ruling A7: an object that is no open instance is not taken for one.
      EXPECT_THAT(each.with(&object), HasType(DAT_INVALID_HANDLE));
    } else {
      EXPECT_EQ(each.with(&object), FakeProvider::answer_of(each.slot_offset));
    }
  }
  EXPECT_THAT(dat_ia_close(&object, DAT_CLOSE_DEFAULT), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(provider.closes, 0);
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), Succeeds());
  EXPECT_EQ(provider.closes, 1);
}

// HND-1, HND-4, HND-9, REG-TBL-3: with a foreign Provider there, handles of no Provider are still refused, whatever
// they are.
REGISTRY_TEST(RegistryForeign, WhatIsNobodysHandleIsRefused) {
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("net0")), Succeeds());
  FakeProvider unknown;
  FakeProvider::Object of_unknown = unknown.object();
  alignas(8) char bytes[2 * sizeof(FakeProvider::Object)];
  const FakeProvider::Object object = provider.object();
  std::memcpy(bytes + 1, &object, sizeof object);
  std::vector<DAT_HANDLE> handles{DAT_HANDLE_NULL,
                                  DAT_EVD_ASYNC_EXISTS,
                                  DAT_EVD_OUT_OF_SCOPE,
                                  &of_unknown,
                                  bytes + 1,
                                  reinterpret_cast<DAT_HANDLE>(0x1000)};
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 50; ++i) {
    handles.push_back(reinterpret_cast<DAT_HANDLE>(random() >> (random() % 64)));
  }
  for (const Call& each : all_calls()) {
    for (const DAT_HANDLE handle : handles) {
      EXPECT_THAT(each.with(handle), HasType(DAT_INVALID_HANDLE)) << each.name << " " << handle;
    }
  }
}

// HND-2 and ruling A7 for instances of other Providers: their memory may be anything after the close.
REGISTRY_TEST(RegistryForeign, AnInstanceThatWasClosedIsRefused) {
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("net0")), Succeeds());
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(call(&dat_pz_create, opened.ia), FakeProvider::answer_of(offsetof(DAT_PROVIDER, pz_create_func)));
  ASSERT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), Succeeds());
  EXPECT_THAT(call(&dat_pz_create, opened.ia), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(provider.closes, 1);
}

// OBJ-7: our own objects beside foreign ones, and neither in place of the other (HND-7).
REGISTRY_TEST(RegistryForeign, OurObjectsAreNotMistakenForTheirs) {
  FakeProvider provider;
  ASSERT_THAT(provider.add(provider_info("net0")), Succeeds());
  const Opened theirs = open_ia("net0");
  const Opened ours = open_ia("soft-lo");
  ASSERT_THAT(ours.rc, Succeeds());
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_pz_create(ours.ia, &pz), Succeeds());
  FakeProvider::Object their_object = provider.object();
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ep_create(ours.ia, &their_object, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr, &ep),
              HasType(DAT_INVALID_HANDLE));
  // Sharing an async EVD with an adapter of another Provider (IA-OPEN-13).
  std::string name = "soft-lo";
  DAT_EVD_HANDLE async_evd = &their_object;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ia_open(name.data(), 8, &async_evd, &ia), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(async_evd, static_cast<DAT_EVD_HANDLE>(&their_object)) << "IA-OPEN-14";
  DAT_HANDLE_TYPE type = DAT_HANDLE_TYPE_CR;
  EXPECT_THAT(dat_get_handle_type(pz, &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_PZ);
  EXPECT_EQ(dat_get_handle_type(&their_object, &type),
            FakeProvider::answer_of(offsetof(DAT_PROVIDER, get_handle_type_func)));
  EXPECT_THAT(dat_pz_free(pz), Succeeds());
  EXPECT_THAT(dat_pz_free(pz), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ia_close(theirs.ia, DAT_CLOSE_DEFAULT), Succeeds());
  EXPECT_THAT(dat_ia_close(ours.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
}

// RC-7: a Provider of version 1.1, whose table ends before the calls of 1.2, and calls that a Provider leaves out.
REGISTRY_TEST(RegistryForeign, CallsThatAProviderHasNotGotAreNotImplemented) {
  FakeProvider old;
  old.table.pz_free_func = nullptr;
  ASSERT_THAT(old.add(provider_info("net0", 1, 1)), Succeeds());
  const Opened opened = open_ia("net0", 1, 1);
  ASSERT_THAT(opened.rc, Succeeds());
  for (const Call& each : all_calls()) {
    if (is_close(each)) {
      continue;
    }
    const bool missing =
        each.name == "dat_pz_free" || each.slot_offset >= offsetof(DAT_PROVIDER, lmr_sync_rdma_read_func);
    EXPECT_EQ(each.with(opened.ia),
              missing ? static_cast<DAT_RETURN>(DAT_NOT_IMPLEMENTED) : FakeProvider::answer_of(each.slot_offset))
        << each.name;
  }
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), Succeeds());
}

// HND-9: what counts is what the object's first word points to, even if it is not the table that was registered.
FakeProvider* its_own_table = nullptr;

DAT_RETURN open_with_its_own_table(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE* ia) {
  *ia = new FakeProvider::Object(its_own_table->object());
  return DAT_SUCCESS;
}

REGISTRY_TEST(RegistryForeign, AnInstanceMayHaveATableOfItsOwn) {
  FakeProvider provider;
  its_own_table = &provider;
  DAT_PROVIDER registered{};
  registered.ia_open_func = open_with_its_own_table;
  const DAT_PROVIDER_INFO info = provider_info("net0");
  ASSERT_THAT(dat_registry_add_provider(&registered, &info), Succeeds());
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  EXPECT_EQ(call(&dat_pz_create, opened.ia), FakeProvider::answer_of(offsetof(DAT_PROVIDER, pz_create_func)));
  FakeProvider::Object object = provider.object();
  EXPECT_EQ(dat_pz_free(&object), FakeProvider::answer_of(offsetof(DAT_PROVIDER, pz_free_func)));
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), Succeeds());
  EXPECT_EQ(provider.closes, 1);
  EXPECT_THAT(dat_pz_free(&object), HasType(DAT_INVALID_HANDLE)) << "nothing of that table is open";
  EXPECT_THAT(dat_registry_remove_provider(&registered, &info), Succeeds());
}

// What another Provider refuses has a sentence, which is not that of a call before.
REGISTRY_TEST(RegistryForeign, ARefusalIsToldInWords) {
  FakeProvider provider;
  FakeProvider::Object object = provider.object();
  ASSERT_THAT(provider.add(provider_info("net0")), Succeeds());
  const auto an_older_one = [] {
    EXPECT_THAT(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_DEFAULT), HasType(DAT_INVALID_HANDLE));
  };
  an_older_one();
  provider.open_result = static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY;
  EXPECT_EQ(open_ia("net0").rc, provider.open_result);
  EXPECT_THAT(anydat_last_error(),
              testing::AllOf(testing::StartsWith("dat_ia_open: "),
                             testing::HasSubstr("DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_MEMORY")));
  provider.open_result = DAT_SUCCESS;
  const Opened opened = open_ia("net0");
  ASSERT_THAT(opened.rc, Succeeds());
  an_older_one();
  EXPECT_THAT(dat_pz_free(&object), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_THAT(anydat_last_error(),
              testing::AllOf(testing::StartsWith("dat_pz_free: "), testing::HasSubstr("DAT_MODEL_NOT_SUPPORTED")));
  provider.close_result = static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_STATE;
  EXPECT_EQ(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), provider.close_result);
  EXPECT_THAT(anydat_last_error(),
              testing::AllOf(testing::StartsWith("dat_ia_close: "), testing::HasSubstr("DAT_INVALID_STATE")));
  provider.close_result = DAT_SUCCESS;
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT), Succeeds());
}

// A Provider that says it has succeeded and returns nothing.
REGISTRY_TEST(RegistryForeign, SuccessWithoutAHandleIsAnError) {
  DAT_PROVIDER table{};
  table.ia_open_func = [](const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) -> DAT_RETURN {
    return DAT_SUCCESS;
  };
  const DAT_PROVIDER_INFO info = provider_info("net0");
  ASSERT_THAT(dat_registry_add_provider(&table, &info), Succeeds());
  EXPECT_THAT(open_ia("net0").rc, HasType(DAT_INTERNAL_ERROR));
  EXPECT_THAT(dat_registry_remove_provider(&table, &info), Succeeds());
}

}  // namespace
}  // namespace anydat::test
