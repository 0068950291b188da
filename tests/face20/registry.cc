// SPDX-License-Identifier: BSD-3-Clause
// The registry of libdat2: one dat.conf for both versions (D2-CONF, D2-REG). It is read once, so each test is a process
// of its own.
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

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

// The names of Debian's file, all of which begin with ofa-v2-.
std::vector<std::string> openfabrics_names() {
  std::vector<std::string> names;
  for (const char* name : {"ib0", "ib1", "iwarp", "ehca0-2", "cma-roe-eth2", "cma-roe-eth3", "scm-roe-mlx4_0-1",
                           "scm-roe-mlx4_0-2", "mcm-1", "mcm-2", "scif0", "scif0-u", "scif0-m", "mic0"}) {
    names.emplace_back(name);
  }
  // A port of a device, and what connections are made by.
  const auto add = [&names](const char* device, std::initializer_list<const char*> ways) {
    for (const char* way : ways) {
      for (const int port : {1, 2}) names.push_back(fmt::format("{}-{}{}", device, port, way));
    }
  };
  add("mlx4_0", {"", "u", "s", "m"});
  add("mlx4_1", {"s", "u", "m"});
  add("mthca0", {"", "u"});
  add("ipath0", {""});
  for (const char* device : {"mlx5_0", "mlx5_1"}) add(device, {"s", "u", "m"});
  for (const char* device : {"qib0", "qib1", "hfi1_0", "hfi1_1"}) add(device, {"s", "m"});
  return names;
}

// D2-CONF-1: one line of ours is enough for all of them.
const Role kPattern("registry2 pattern", [](RoleContext&) {
  const ConfFile conf(line("ofa-v2-*", "u2.0", ANYDAT_LIBDAT2, "soft-lo"));
  const std::vector<std::string> names = openfabrics_names();
  EXPECT_EQ(names.size(), 62U);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) EXPECT_THAT(open_and_close("ofa-v2-" + name, 2, 0), Succeeds()) << name;
  EXPECT_THAT(open_and_close("ofa-v1-ib0", 2, 0), HasType(DAT_PROVIDER_NOT_FOUND));
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

// Providers inside the test program, which know of each other what they are told to say.
struct Relative {
  const DAT_PROVIDER* provider;  // HND-9
  DAT_RETURN rc = DAT_SUCCESS;
  DAT_BOOLEAN related = DAT_FALSE;
};
template <int Number>
Relative relative{};
template <int Number>
DAT_RETURN open_relative(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  *async_evd = *ia = &relative<Number>;
  return DAT_SUCCESS;
}
DAT_RETURN close_relative(DAT_IA_HANDLE, DAT_CLOSE_FLAGS) {
  return DAT_SUCCESS;
}
DAT_RETURN relative_says(DAT_IA_HANDLE ia, const DAT_NAME_PTR, DAT_BOOLEAN* related) {
  const auto* const object = static_cast<const Relative*>(ia);
  *related = object->related;
  return object->rc;
}
template <int Number>
DAT_IA_HANDLE open_relative_named(std::string name) {
  static DAT_PROVIDER table{};
  static const std::string device = name;
  table.device_name = device.c_str();
  table.ia_open_func = open_relative<Number>;
  table.ia_close_func = close_relative;
  table.ia_ha_related_func = relative_says;
  relative<Number>.provider = &table;
  DAT_PROVIDER_INFO info{};
  std::snprintf(info.ia_name, sizeof info.ia_name, "%s", name.c_str());
  info.dapl_version_major = 2;
  EXPECT_THAT(dat_registry_add_provider(&table, &info), Succeeds());
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ia_openv(name.data(), 8, &evd, &ia, 2, 0, DAT_FALSE), Succeeds());
  return ia;
}

// D2-HA-3
const Role kRelated("registry2 related", [](RoleContext&) {
  const DAT_IA_HANDLE first = open_relative_named<1>("first");
  const DAT_IA_HANDLE second = open_relative_named<2>("second");
  const auto between = [](std::string one, std::string other) {
    auto relationship = static_cast<DAT_HA_RELATIONSHIP>(77);
    EXPECT_THAT(dat_registry_providers_related(one.data(), other.data(), &relationship), Succeeds());
    return relationship;
  };
  EXPECT_EQ(between("first", "second"), DAT_HA_FALSE);
  relative<1>.related = relative<2>.related = DAT_TRUE;
  EXPECT_EQ(between("first", "second"), DAT_HA_TRUE);
  EXPECT_EQ(between("soft-lo", "second"), DAT_HA_TRUE) << "one of them is asked";
  relative<2>.related = DAT_FALSE;
  EXPECT_EQ(between("first", "second"), DAT_HA_CONFLICTING);
  EXPECT_EQ(between("second", "first"), DAT_HA_CONFLICTING);
  relative<1>.rc = static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INTERNAL_ERROR;
  EXPECT_EQ(between("first", "second"), DAT_HA_FALSE) << "only the other's answer is one";
  EXPECT_EQ(between("first", "soft-lo"), DAT_HA_UNKNOWN);
  EXPECT_THAT(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_EQ(between("first", "second"), DAT_HA_UNKNOWN) << "no instance is open";
  EXPECT_THAT(dat_ia_close(first, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
});

class Dat2Registry : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Files, Dat2Registry, testing::Values("both", "many", "pattern", "query", "related"),
                         [](const auto& its) { return its.param; });

// D2-CONF-1..3, D2-CONF-5, D2-REG-2, D2-REG-5, D2-HA-3, D2-QUERY-1, D2-QUERY-4: see the roles.
TEST_P(Dat2Registry, IsSharedWithTheOtherVersion) {
  PeerProcess process("registry2 " + GetParam(), all_wires().front());
  EXPECT_EQ(process.wait_exit(), 0) << "what was wrong stands above";
}

}  // namespace
}  // namespace anydat::test
