// SPDX-License-Identifier: BSD-3-Clause
// dat_set_consumer_context, dat_get_consumer_context, dat_get_handle_type: sections 6.2 to 6.4 of part 1.
#include <functional>

#include "evd_fixture.h"
#include "handles_fixture.h"

namespace anydat::test {
namespace {

class HandleContext : public testing::TestWithParam<Wire> {
 protected:
  struct Object {
    DAT_HANDLE_TYPE type;
    DAT_HANDLE handle;
  };
  // One of each type.
  std::vector<Object> objects() const {
    std::vector<Object> all;
    for (int i = 0; i < kHandleTypes; ++i) {
      const auto type = static_cast<DAT_HANDLE_TYPE>(i);
      if (home.of_type(type) != DAT_HANDLE_NULL) all.push_back({type, home.of_type(type)});
    }
    return all;
  }
  static DAT_CONTEXT get(DAT_HANDLE handle) {
    DAT_CONTEXT context{};
    context.as_64 = 0xA5A5A5A5A5A5A5A5u;
    EXPECT_THAT(dat_get_consumer_context(handle, &context), Succeeds());
    return context;
  }
  static void set(DAT_HANDLE handle, DAT_UINT64 value) {
    DAT_CONTEXT context{};
    context.as_64 = value;
    EXPECT_THAT(dat_set_consumer_context(handle, context), Succeeds());
  }

  Household home{GetParam()};
};

// OBJ-5, CTX-GET-1, CTX-GET-2
TEST_P(HandleContext, IsNullAtFirstForEveryType) {
  EXPECT_GE(objects().size(), 10u);
  for (const Object& object : objects()) {
    EXPECT_EQ(get(object.handle).as_64, 0u) << name_of_type(object.type);
    EXPECT_EQ(get(object.handle).as_ptr, nullptr) << name_of_type(object.type);
  }
}

// CTX-SET-1, CTX-SET-2, CTX-SET-3, CTX-GET-1, CTX-GET-2, ruling A51
TEST_P(HandleContext, LastValueSetIsReadForEveryType) {
  for (const Object& object : objects()) {
    SCOPED_TRACE(name_of_type(object.type));
    set(object.handle, 1);
    set(object.handle, 2);
    EXPECT_EQ(get(object.handle).as_64, 2u);
    EXPECT_EQ(get(object.handle).as_64, 2u) << "reading takes nothing away";
    set(object.handle, 0);
    EXPECT_EQ(get(object.handle).as_ptr, nullptr);
  }
}

// CTX-SET-4, CTX-SET-5, CTX-SET-8: no value is bad.
TEST_P(HandleContext, AnyPatternSurvives) {
  std::vector<DAT_UINT64> patterns{0, 1, ~DAT_UINT64{0}, 0x8000000000000000u, 0x123456789ABCDEF0u};
  for (int bit = 0; bit < 64; ++bit) {
    patterns.push_back(DAT_UINT64{1} << bit);
  }
  for (const Object& object : objects()) {
    for (const DAT_UINT64 pattern : patterns) {
      set(object.handle, pattern);
      ASSERT_EQ(get(object.handle).as_64, pattern) << name_of_type(object.type);
    }
    DAT_CONTEXT context{};
    context.as_ptr = &context;
    EXPECT_THAT(dat_set_consumer_context(object.handle, context), Succeeds());
    EXPECT_EQ(get(object.handle).as_ptr, &context);
  }
}

// CTX-SET-9
TEST_P(HandleContext, EachHandleHasItsOwn) {
  const Household other(GetParam());
  DAT_UINT64 next = 100;
  for (const Object& object : objects()) {
    set(object.handle, next++);
  }
  next = 100;
  for (const Object& object : objects()) {
    EXPECT_EQ(get(object.handle).as_64, next++) << name_of_type(object.type);
    EXPECT_EQ(get(other.of_type(object.type)).as_64, 0u) << name_of_type(object.type);
  }
  EXPECT_EQ(get(home.connected).as_64, 0u) << "another endpoint";
  EXPECT_EQ(get(home.async_evd).as_64, 0u) << "another EVD";
}

// OBJ-5, HND-5: a new object does not inherit what a freed one left.
TEST_P(HandleContext, NewObjectStartsAfresh) {
  for (int i = 0; i < 200; ++i) {
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_pz_create(home.ia, &pz), Succeeds());
    ASSERT_EQ(get(pz).as_64, 0u);
    set(pz, 77);
    ASSERT_THAT(dat_pz_free(pz), Succeeds());
  }
}

// CTX-SET-7, CTX-GET-3, HTYPE-3, HND-1, HND-2, HND-4
TEST_P(HandleContext, BadHandlesAreRefused) {
  Household gone(GetParam());
  std::vector<DAT_HANDLE> bad = impostors(home.evd);
  bad.push_back(DAT_HANDLE_NULL);
  gone.free_all();
  for (int i = 0; i < kHandleTypes; ++i) {
    bad.push_back(gone.of_type(static_cast<DAT_HANDLE_TYPE>(i)));
  }
  for (const DAT_HANDLE handle : bad) {
    DAT_CONTEXT context{};
    DAT_HANDLE_TYPE type{};
    EXPECT_THAT(dat_set_consumer_context(handle, context), HasType(DAT_INVALID_HANDLE)) << handle;
    EXPECT_THAT(dat_get_consumer_context(handle, &context), HasType(DAT_INVALID_HANDLE)) << handle;
    EXPECT_THAT(dat_get_handle_type(handle, &type), HasType(DAT_INVALID_HANDLE)) << handle;
  }
}

// CTX-GET-4, HTYPE-4, ARG-2
TEST_P(HandleContext, ResultsMayNotBeNull) {
  for (const DAT_RETURN rc : {dat_get_consumer_context(home.evd, nullptr), dat_get_handle_type(home.evd, nullptr)}) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG2));
  }
}

// CTX-GET-5, THR-3, CTX-SET-9: handles of their own, threads of their own.
TEST_P(HandleContext, ThreadsUseDifferentHandlesInParallel) {
  const std::vector<Object> all = objects();
  in_threads(static_cast<int>(all.size()), [&](int index) {
    const DAT_HANDLE mine = all[static_cast<std::size_t>(index)].handle;
    for (DAT_UINT64 i = 0; i < 2000; ++i) {
      set(mine, i << 8 | static_cast<DAT_UINT64>(index));
      ASSERT_EQ(get(mine).as_64, i << 8 | static_cast<DAT_UINT64>(index));
    }
  });
}

// HTYPE-1, HTYPE-2, SRQ-TYPE-4, ruling A51
TEST_P(HandleContext, TypeIsToldForEveryType) {
  for (const Object& object : objects()) {
    DAT_HANDLE_TYPE type = static_cast<DAT_HANDLE_TYPE>(15);
    EXPECT_THAT(dat_get_handle_type(object.handle, &type), Succeeds());
    EXPECT_EQ(type, object.type) << name_of_type(object.type);
  }
  DAT_HANDLE_TYPE type{};
  EXPECT_THAT(dat_get_handle_type(home.async_evd, &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_EVD);
}

ANYDAT_OVER_ALL_WIRES(HandleContext);

}  // namespace
}  // namespace anydat::test
