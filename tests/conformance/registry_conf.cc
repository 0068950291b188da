// SPDX-License-Identifier: BSD-3-Clause
// Where the static registry comes from (CONF-1, CONF-2, CONF-6, CONF-8, ENV-1..4), and that what the parser reads is
// what programs get. The parser has tests of its own (CONF-9..21).
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "conformance/registry_fixture.h"
#include "support/child.h"

namespace anydat::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// CONF-2, ENV-1.
REGISTRY_TEST(RegistryConf, DatOverrideNamesTheFile) {
  const StaticRegistryText conf(entry_line("net0", "libnone.so"));
  EXPECT_THAT(listed_names(), ElementsAre("net0"));
}

// CONF-6.
REGISTRY_TEST(RegistryConf, IsReadOnce) {
  const TestFolder folder;
  folder.write("first", entry_line("first", "libnone.so"));
  folder.write("second", entry_line("second", "libnone.so"));
  setenv("DAT_OVERRIDE", folder.path("first").c_str(), 1);
  EXPECT_THAT(open_ia("nobody").rc, HasType(DAT_PROVIDER_NOT_FOUND));  // the first call reads it, whichever it is
  folder.write("first", entry_line("edited", "libnone.so"));
  setenv("DAT_OVERRIDE", folder.path("second").c_str(), 1);
  EXPECT_THAT(listed_names(), ElementsAre("first"));
  unsetenv("DAT_OVERRIDE");
  EXPECT_THAT(listed_names(), ElementsAre("first"));
}

// CONF-11, CONF-18, CONF-21, CONF-22, CONF-24, CONF-25, ADM-3: a file with everything in it, as a program sees it.
REGISTRY_TEST(RegistryConf, AFileFromRealLifeIsUnderstood) {
  const StaticRegistryText conf(
      "# IA         API  safety        default lib              version  instance data  platform\r\n"
      "OpenIB-cma   u1.2 nonthreadsafe default libdaplcma.so.1  dapl.1.2 \"ib0 0\"        \"\"   # in use\r\n"
      "OpenIB-cma   k1.2 nonthreadsafe default libdaplcma.so.1  dapl.1.2 \"ib0 0\"        \"\"\r\n"
      "ibd0  u1.2  nonthreadsafe  default  udapl_tavor.so.1  SUNW.1.0  \" \"  \"driver_name=tavor\"\n"
      "ibd0  u1.2  nonthreadsafe  default  udapl_other.so.1  SUNW.1.0  \" \"  \"driver_name=other\"\n"
      "broken u1.2 nonthreadsafe default\n"
      "old   u1.1  threadsafe  nondefault  libold.so  dapl.1.1  \"\"  \"\"\n"
      "\tofa-v2-ib0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"ib0 0\" \"\"");
  EXPECT_THAT(listed_names(), ElementsAre("OpenIB-cma", "ibd0", "ofa-v2-ib0"));
}

// The library writes nothing where the program writes.
void expect_silence() {
  const TestFolder folder;
  folder.write("dat.conf", entry_line("net0", "libnone.so") + "a line that is none\n");
  setenv("DAT_OVERRIDE", folder.path("dat.conf").c_str(), 1);
  const int out = dup(STDOUT_FILENO);
  const int err = dup(STDERR_FILENO);
  const int file = open(folder.path("output").c_str(), O_RDWR | O_CREAT, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  DAT_COUNT count = 0;
  const DAT_RETURN list_rc = dat_registry_list_providers(0, &count, nullptr);
  const Opened opened = open_ia("soft-lo");
  const DAT_RETURN close_rc = dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG);
  std::fflush(nullptr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  EXPECT_THAT(list_rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(opened.rc, Succeeds());
  EXPECT_THAT(close_rc, Succeeds());
  EXPECT_EQ(lseek(file, 0, SEEK_END), 0) << std::ifstream(folder.path("output")).rdbuf();
}

// ENV-4
REGISTRY_TEST(RegistryConf, ByDefaultNothingIsPrinted) {
  unsetenv("DAT_LOG");
  expect_silence();
}

// ENV-2, ENV-3
REGISTRY_TEST(RegistryConf, TheOldDebugVariablesAreAccepted) {
  unsetenv("DAT_LOG");
  setenv("DAT_DBG_TYPE", "0xff", 1);
  setenv("DAT_DBG_DEST", "0x1", 1);
  expect_silence();
}

// The role runs as a program that was installed with the set-user-id bit.
const Role kPrivileged("RegistryConf.Privileged", [](RoleContext&) {
  const char* const path = std::getenv("DAT_OVERRIDE");
  ASSERT_NE(path, nullptr) << "the program itself does see the variable";
  EXPECT_THAT(listed_names(), Not(Contains("net0")));
  EXPECT_THAT(listed_names(), Contains("soft-lo"));
});

// CONF-8
TEST(RegistryConf, DatOverrideIsIgnoredByAPrivilegedProcess) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can install a set-user-id program for another user";
  }
  const TestFolder folder;
  struct statvfs filesystem {};
  ASSERT_EQ(statvfs(folder.path("").c_str(), &filesystem), 0);
  if ((filesystem.f_flag & (ST_NOSUID | ST_NOEXEC)) != 0) {
    GTEST_SKIP() << "the folder for temporary files does not let a program change its user";
  }
  folder.write("dat.conf", entry_line("net0", "libnone.so"));
  const std::string program = folder.path("program");
  std::filesystem::copy_file("/proc/self/exe", program);
  ASSERT_EQ(chmod(folder.path("").c_str(), 0755), 0);
  ASSERT_EQ(chown(program.c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);

  const pid_t child = fork();
  if (child == 0) {
    setenv("DAT_OVERRIDE", folder.path("dat.conf").c_str(), 1);
    setenv("ANYDAT_TEST_ROLE", "RegistryConf.Privileged", 1);
    setenv("ANYDAT_TEST_ROLE_WIRE", all_wires().front().name.c_str(), 1);
    setenv("ANYDAT_TEST_ROLE_ARGUMENTS", "", 1);
    for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) {
      unsetenv(variable);
    }
    execl(program.c_str(), program.c_str(), nullptr);
    _exit(127);
  }
  const int status = end_of(child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 127) {
    GTEST_SKIP() << "the other user cannot start the program or load its libraries";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace anydat::test
