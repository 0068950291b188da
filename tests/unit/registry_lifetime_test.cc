// SPDX-License-Identifier: BSD-3-Clause
// Before the library's constructors and after its destructor: REG-ADD-10 and REG-LIST-17. The unit tests are linked
// with the library's objects, so this program's own constructors and destructors can come before and after them.
#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace anydat::test {
namespace {

DAT_RETURN open_early(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) {
  return static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP;
}

DAT_PROVIDER early_provider;
DAT_RETURN early_result = DAT_INTERNAL_ERROR;

DAT_PROVIDER_INFO info_of(const char* name) {
  DAT_PROVIDER_INFO info{};
  std::strcpy(info.ia_name, name);
  info.dapl_version_major = DAT_VERSION_MAJOR;
  info.dapl_version_minor = DAT_VERSION_MINOR;
  info.is_thread_safe = DAT_THREADSAFE;
  return info;
}

// 101 is before every constructor without a number.
[[gnu::constructor(101)]] void register_early() {
  early_provider.ia_open_func = open_early;
  const DAT_PROVIDER_INFO info = info_of("early");
  early_result = dat_registry_add_provider(&early_provider, &info);
}

// REG-ADD-10.
TEST(RegistryLifetime, AProviderMayRegisterBeforeTheLibraryIsInitialised) {
  EXPECT_EQ(early_result, static_cast<DAT_RETURN>(DAT_SUCCESS));
  char name[] = "early";
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_ia_open(name, 8, &async, &ia);
  EXPECT_EQ(DAT_GET_SUBTYPE(rc), static_cast<DAT_RETURN>(DAT_RESOURCE_TEP)) << "not the answer of its open function";
}

constexpr int kAllRefused = 42;
bool look_at_the_end = false;

int refused(DAT_RETURN rc) {
  return DAT_GET_TYPE(rc) == DAT_INVALID_STATE ? 1 : 0;
}

// And 101 is after every destructor without one.
[[gnu::destructor(101)]] void look_after_the_end() {
  if (!look_at_the_end) return;
  const DAT_PROVIDER_INFO info = info_of("late");
  char name[] = "soft-lo";
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_COUNT count = 0;
  const int sum = refused(dat_registry_list_providers(0, &count, nullptr)) +
                  refused(dat_registry_add_provider(&early_provider, &info)) +
                  refused(dat_registry_remove_provider(&early_provider, &info)) +
                  refused(dat_ia_open(name, 8, &async, &ia)) + refused(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
  _exit(sum == 5 ? kAllRefused : sum);
}

// REG-LIST-17.
TEST(RegistryLifetimeDeathTest, NothingWorksAfterTheLibrarysEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        look_at_the_end = true;
        std::exit(0);
      },
      testing::ExitedWithCode(kAllRefused), "");
}

}  // namespace
}  // namespace anydat::test
