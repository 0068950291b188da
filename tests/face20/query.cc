// SPDX-License-Identifier: BSD-3-Clause
// Asking an adapter what it is without opening it: chapter 13.4 of the rules of uDAPL 2.0.
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <netinet/in.h>

#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <string>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

// A query that is closed with its owner.
class Query {
 public:
  explicit Query(std::string name) {
    std::memset(static_cast<void*>(&attr), 0, sizeof attr);  // also what is between its members
    rc_ = dat_ib_open_query(name.data(), &handle_, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider);
  }
  ~Query() {
    if (handle_ != DAT_HANDLE_NULL) {
      EXPECT_THAT(dat_ib_close_query(handle_), Succeeds());
    }
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  DAT_RETURN rc() const { return rc_; }
  DAT_HANDLE get() const { return handle_; }
  DAT_HANDLE release() { return std::exchange(handle_, DAT_HANDLE_NULL); }

  DAT_IA_ATTR attr;
  DAT_PROVIDER_ATTR provider{};

 private:
  DAT_HANDLE handle_ = DAT_HANDLE_NULL;
  DAT_RETURN rc_;
};

// What stands where pointers point to is compared by itself.
void expect_same(const DAT_IA_ATTR& first, const DAT_IA_ATTR& second) {
  DAT_IA_ATTR one;
  DAT_IA_ATTR other;
  std::memcpy(static_cast<void*>(&one), &first, sizeof one);
  std::memcpy(static_cast<void*>(&other), &second, sizeof other);
  ASSERT_EQ(one.ia_address_ptr->sa_family, other.ia_address_ptr->sa_family);
  const std::size_t size = one.ia_address_ptr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  EXPECT_EQ(std::memcmp(one.ia_address_ptr, other.ia_address_ptr, size), 0);
  one.ia_address_ptr = other.ia_address_ptr = nullptr;
  EXPECT_EQ(std::memcmp(&one, &other, sizeof one), 0);
}

void expect_same(DAT_PROVIDER_ATTR one, DAT_PROVIDER_ATTR other) {
  ASSERT_EQ(one.num_provider_specific_attr, other.num_provider_specific_attr);
  for (int i = 0; i < one.num_provider_specific_attr; ++i) {
    EXPECT_STREQ(one.provider_specific_attr[i].name, other.provider_specific_attr[i].name);
    EXPECT_STREQ(one.provider_specific_attr[i].value, other.provider_specific_attr[i].value);
  }
  one.provider_specific_attr = other.provider_specific_attr = nullptr;
  EXPECT_EQ(std::memcmp(&one, &other, sizeof one), 0);
}

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

class Dat2Query : public testing::TestWithParam<Wire> {
 protected:
  ScopedEnv env{GetParam().env};
  std::string name = GetParam().ia_name;
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Query, testing::ValuesIn(all_wires()), wire_name);

// D2-QUERY-1, D2-QUERY-5.
TEST_P(Dat2Query, TellsWhatAnOpenAdapterTells) {
  const Query query(name);
  ASSERT_THAT(query.rc(), Succeeds());
  ASSERT_NE(query.get(), DAT_HANDLE{DAT_HANDLE_NULL});
  EXPECT_STREQ(query.attr.adapter_name, name.c_str());
  // An open by the macro, which asks for as much thread safety.
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_ia_open(name.data(), 8, &async, &ia), Succeeds());
  Query opened(name);  // whose structures the open adapter fills instead
  EXPECT_THAT(dat_ia_query(ia, nullptr, DAT_IA_FIELD_ALL, &opened.attr, DAT_PROVIDER_FIELD_ALL, &opened.provider),
              Succeeds());
  expect_same(query.attr, opened.attr);
  expect_same(query.provider, opened.provider);
  EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  // The same once more, by the handle.
  Query again(name);
  DAT_IA_ATTR& attr = again.attr;
  DAT_PROVIDER_ATTR& provider = again.provider;
  attr.max_eps = 0;
  provider.max_private_data_size = 0;
  async = &again;
  ASSERT_THAT(dat_ia_query(query.get(), &async, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider),
              Succeeds());
  EXPECT_EQ(async, DAT_HANDLE{DAT_HANDLE_NULL});
  expect_same(attr, query.attr);
  expect_same(provider, query.provider);
  EXPECT_THAT(dat_ia_query(query.get(), nullptr, DAT_IA_FIELD_ALL, nullptr, 0, nullptr),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ia_query(query.get(), nullptr, ~DAT_UINT64{0}, &attr, 0, nullptr), HasType(DAT_INVALID_PARAMETER));
}

// D2-QUERY-1: one structure is enough, and one there has to be.
TEST_P(Dat2Query, NeedsAStructureANameAndAPlaceForTheHandle) {
  DAT_IA_ATTR attr{};
  DAT_PROVIDER_ATTR provider{};
  const auto open = [&](DAT_NAME_PTR of, DAT_HANDLE* to, DAT_UINT64 attr_mask, DAT_IA_ATTR* ia,
                        DAT_UINT64 provider_mask, DAT_PROVIDER_ATTR* its_provider) {
    return dat_ib_open_query(of, to, attr_mask, ia, provider_mask, its_provider);
  };
  DAT_HANDLE handle = &attr;
  ASSERT_THAT(open(name.data(), &handle, DAT_IA_FIELD_ALL, &attr, 0, nullptr), Succeeds());
  EXPECT_STREQ(attr.adapter_name, name.c_str());
  EXPECT_THAT(dat_ib_close_query(handle), Succeeds());
  ASSERT_THAT(open(name.data(), &handle, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &provider), Succeeds());
  EXPECT_EQ(provider.dapl_version_major, 2u);
  EXPECT_THAT(dat_ib_close_query(handle), Succeeds());

  std::string endless(DAT_NAME_MAX_LENGTH, 'x');
  handle = &attr;
  for (const DAT_RETURN rc :
       {open(name.data(), &handle, DAT_IA_FIELD_ALL, nullptr, DAT_PROVIDER_FIELD_ALL, nullptr),
        open(name.data(), &handle, 0, nullptr, 0, nullptr), open(name.data(), &handle, 0, &attr, 1, nullptr),
        open(name.data(), &handle, ~DAT_UINT64{0}, &attr, 0, nullptr),
        open(nullptr, &handle, DAT_IA_FIELD_ALL, &attr, 0, nullptr),
        open(endless.data(), &handle, DAT_IA_FIELD_ALL, &attr, 0, nullptr),
        open(name.data(), nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr)}) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  }
  EXPECT_EQ(handle, DAT_HANDLE{DAT_HANDLE_NULL});
}

// D2-QUERY-2.
TEST_P(Dat2Query, StartsNothing) {
  { const Query query(name); }  // what is loaded once is loaded
  const std::ptrdiff_t threads = entries_of("/proc/self/task");
  const std::ptrdiff_t descriptors = entries_of("/proc/self/fd");
  const Query query(name);
  ASSERT_THAT(query.rc(), Succeeds());
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
}

// D2-QUERY-2: names that no adapter has, and those of devices that are not there.
TEST_P(Dat2Query, AnswersUnknownNamesAsAnOpenDoes) {
  for (const char* unknown : {"nobody", "soft-nobody", "verbs-nobody", ""}) {
    std::string text = unknown;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    const DAT_RETURN opened = dat_ia_open(text.data(), 8, &evd, &ia);
    EXPECT_NE(opened, DAT_SUCCESS);
    EXPECT_EQ(Query(unknown).rc(), opened) << unknown;
  }
}

// D2-QUERY-3: the handle is that of no object.
TEST_P(Dat2Query, IsGoodForNothingElse) {
  const Query query(name);
  ASSERT_THAT(query.rc(), Succeeds());
  const DAT_HANDLE handle = query.get();
  DAT_HANDLE made = DAT_HANDLE_NULL;
  DAT_HANDLE_TYPE type = DAT_HANDLE_TYPE_IA;
  DAT_CONTEXT context{};
  DAT_UINT64 values[DCNT_IA_ALL_COUNTERS];
  for (const DAT_RETURN rc :
       {dat_ia_close(handle, DAT_CLOSE_GRACEFUL_FLAG), dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG),
        dat_pz_create(handle, &made), dat_evd_create(handle, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made),
        dat_get_handle_type(handle, &type), dat_get_consumer_context(handle, &context),
        dat_set_consumer_context(handle, context), dat_ep_reset(handle),
        dat_ib_query_counters(handle, DCNT_IA_ALL_COUNTERS, values, 0), dat_ib_print_counters(handle, 0, 0),
        dat_ib_start_counter(handle, DCNT_IA_CM), dat_extension_op(handle, DAT_IB_UD_AH_FREE_OP)}) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  }
  EXPECT_EQ(made, DAT_HANDLE{DAT_HANDLE_NULL});
}

// D2-QUERY-4.
TEST_P(Dat2Query, IsClosedOnceAndByItsOwnOperation) {
  Query query(name);
  ASSERT_THAT(query.rc(), Succeeds());
  const Ia ia(GetParam());
  EXPECT_THAT(dat_ib_close_query(ia.get()), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ib_close_query(ia.async_evd()), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ib_close_query(DAT_HANDLE_NULL), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ib_close_query(&query), HasType(DAT_INVALID_HANDLE));
  const DAT_HANDLE handle = query.release();
  EXPECT_THAT(dat_ib_close_query(handle), Succeeds());
  EXPECT_THAT(dat_ib_close_query(handle), HasType(DAT_INVALID_HANDLE));
  DAT_IA_ATTR attr{};
  EXPECT_THAT(dat_ia_query(handle, nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr), HasType(DAT_INVALID_HANDLE));
}

// A Provider that is not ours: its query is a handle whose first word is its table.
struct OtherProvider {
  static DAT_RETURN open(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) { return DAT_INTERNAL_ERROR; }
  static DAT_RETURN ask(DAT_IA_HANDLE, DAT_EVD_HANDLE*, DAT_IA_ATTR_MASK, DAT_IA_ATTR* attr, DAT_PROVIDER_ATTR_MASK,
                        DAT_PROVIDER_ATTR*) {
    attr->max_eps = 77;
    return DAT_SUCCESS;
  }
  static DAT_RETURN operate(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    if (operation == DAT_IB_CLOSE_QUERY_OP) return handle == &object ? DAT_SUCCESS : DAT_INTERNAL_ERROR;
    if (operation != DAT_IB_OPEN_QUERY_OP || handle != DAT_HANDLE_NULL) return DAT_INTERNAL_ERROR;
    EXPECT_STREQ(va_arg(arguments, const char*), kName);
    *va_arg(arguments, DAT_HANDLE*) = &object;
    EXPECT_EQ(va_arg(arguments, DAT_IA_ATTR_MASK), DAT_IA_FIELD_ALL);
    va_arg(arguments, DAT_IA_ATTR*)->max_eps = 76;
    return DAT_SUCCESS;
  }
  static constexpr const char* kName = "other-provider";
  static DAT_PROVIDER table;
  static struct Object { const DAT_PROVIDER* first_word; } object;
};
DAT_PROVIDER OtherProvider::table{};
OtherProvider::Object OtherProvider::object{&table};

// D2-QUERY-1, D2-REG-3: the Provider of the name is asked, whichever it is.
TEST(Dat2QueryOfOthers, GoesToTheProviderOfTheName) {
  DAT_PROVIDER& table = OtherProvider::table;
  table.ia_open_func = &OtherProvider::open;
  table.ia_query_func = &OtherProvider::ask;
  table.handle_extendedop_func = &OtherProvider::operate;
  DAT_PROVIDER_INFO info{};
  std::strcpy(info.ia_name, OtherProvider::kName);
  info.dapl_version_major = 2;
  info.dapl_version_minor = 0;
  info.is_thread_safe = DAT_THREADSAFE;
  ASSERT_THAT(dat_registry_add_provider(&table, &info), Succeeds());
  {
    Query query(OtherProvider::kName);
    ASSERT_THAT(query.rc(), Succeeds());
    EXPECT_EQ(query.get(), DAT_HANDLE{&OtherProvider::object});
    EXPECT_EQ(query.attr.max_eps, 76);
    EXPECT_THAT(dat_registry_remove_provider(&table, &info), HasType(DAT_PROVIDER_IN_USE));
    DAT_IA_ATTR attr{};
    EXPECT_THAT(dat_ia_query(query.get(), nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr), Succeeds());
    EXPECT_EQ(attr.max_eps, 77);
  }
  table.handle_extendedop_func = nullptr;
  EXPECT_THAT(Query(OtherProvider::kName).rc(), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_THAT(dat_registry_remove_provider(&table, &info), Succeeds());
}

}  // namespace
}  // namespace anydat::test
