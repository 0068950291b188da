// SPDX-License-Identifier: BSD-3-Clause
// The registry of libdat2: one dat.conf for both versions (D2-CONF, D2-REG). It is read once, so each test is a process
// of its own.
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "face20/fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// A dat.conf that the process is told of (D2-CONF-3).
class ConfFile {
 public:
  explicit ConfFile(const std::string& text) {
    const int fd = mkstemp(path_.data());
    if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("mkstemp");
    }
    close(fd);
    setenv("DAT_OVERRIDE", path_.c_str(), 1);
  }
  ~ConfFile() { std::remove(path_.c_str()); }
  ConfFile(const ConfFile&) = delete;
  ConfFile& operator=(const ConfFile&) = delete;

 private:
  std::string path_ = testing::TempDir() + "anydat-conf-XXXXXX";
};

std::string line(const std::string& name, const char* version, const char* library, const std::string& parameters) {
  return fmt::format("{} {} nonthreadsafe default {} anydat.1.0 \"{}\" \"\"\n", name, version, library, parameters);
}

DAT_RETURN open_and_close(std::string name, DAT_UINT32 major, DAT_UINT32 minor) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_ia_openv(name.data(), 8, &evd, &ia, major, minor, DAT_FALSE);
  if (rc == DAT_SUCCESS) {
    EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  }
  return rc;
}

DAT_COUNT entries_listed() {
  DAT_COUNT count = 0;
  DAT_PROVIDER_INFO* none = nullptr;
  (void)dat_registry_list_providers(0, &count, &none);
  return count;
}

// D2-CONF-1, D2-CONF-2, D2-CONF-3, D2-REG-2.
const Role kBoth("registry2 both", [](RoleContext&) {
  const ConfFile conf(line("both", "u1.2", "libnobody-has-it.so.1", "") +
                      line("both", "u2.0", ANYDAT_LIBDAT2, "soft-lo") + line("old", "u1.2", ANYDAT_LIBDAT2, "soft-lo"));
  EXPECT_THAT(open_and_close("both", 2, 0), Succeeds());
  EXPECT_NE(open_and_close("both", 1, 2), DAT_SUCCESS) << "that line's library is not there";
  EXPECT_THAT(open_and_close("old", 2, 0), HasType(DAT_PROVIDER_NOT_FOUND));
  EXPECT_THAT(open_and_close("soft-lo", 1, 2), HasType(DAT_PROVIDER_NOT_FOUND))
      << "its own adapters, by the wrong version";
});

// D2-CONF-5, D2-REG-5, D2-HA-3: the names of OpenFabrics' file, whose libraries are not there and are not asked for.
const Role kMany("registry2 many", [](RoleContext&) {
  std::string text = "# a file of 62 lines\n";
  for (int i = 0; i < 62; ++i) text += line(fmt::format("ofa-v2-dev{}-1u", i), "u2.0", "libdaplofa.so.2", "dev 1");
  const ConfFile conf(text);
  EXPECT_THAT(open_and_close("soft-lo", 2, 0), Succeeds());
  EXPECT_GE(entries_listed(), 62);
  EXPECT_NE(open_and_close("ofa-v2-dev7-1u", 2, 0), DAT_SUCCESS);
  char ours[] = "soft-lo";
  char theirs[] = "ofa-v2-dev7-1u";
  DAT_HA_RELATIONSHIP related = DAT_HA_TRUE;
  EXPECT_THAT(dat_registry_providers_related(ours, theirs, &related), Succeeds());
  EXPECT_EQ(related, DAT_HA_UNKNOWN) << "nobody to ask";
});

// D2-QUERY-1, D2-QUERY-4: by a name that this library is registered by, and as dat_ia_open if it cannot be had.
const Role kQuery("registry2 query", [](RoleContext&) {
  const ConfFile conf(line("alias", "u2.0", ANYDAT_LIBDAT2, "soft-lo") +
                      line("lost", "u2.0", "libnobody-has-it.so.1", ""));
  const auto open = [](std::string name, DAT_HANDLE* handle, DAT_IA_ATTR* attr) {
    return dat_ib_open_query(name.data(), handle, DAT_IA_FIELD_ALL, attr, 0, nullptr);
  };
  DAT_IA_ATTR attr{};
  DAT_HANDLE handle = DAT_HANDLE_NULL;
  EXPECT_THAT(open("alias", &handle, &attr), Succeeds());
  EXPECT_STREQ(attr.adapter_name, "alias");
  EXPECT_THAT(dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ib_close_query(handle), Succeeds());
  EXPECT_THAT(dat_ib_close_query(handle), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(open("lost", &handle, &attr), open_and_close("lost", 2, 0));
  EXPECT_EQ(handle, DAT_HANDLE{DAT_HANDLE_NULL});
});

class Dat2Registry : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Files, Dat2Registry, testing::Values("both", "many", "query"),
                         [](const auto& its) { return its.param; });

TEST_P(Dat2Registry, IsSharedWithTheOtherVersion) {
  PeerProcess process("registry2 " + GetParam(), all_wires().front());
  EXPECT_EQ(process.wait_exit(), 0) << "what was wrong stands above";
}

}  // namespace
}  // namespace anydat::test
