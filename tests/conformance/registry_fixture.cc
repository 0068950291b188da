// SPDX-License-Identifier: BSD-3-Clause
#include "conformance/registry_fixture.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "support/patience.h"
#include "support/wire.h"

namespace anydat::test {

void run_alone(const std::string& role) {
  PeerProcess process(role, all_wires().front());
  // A whole test runs in there.
  const bool ended = eventually(
      [&] {
        siginfo_t info{};
        return waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
               info.si_pid == process.pid();
      },
      8 * patience());
  ASSERT_TRUE(ended) << "still running";
  EXPECT_EQ(process.wait_exit(), 0) << "what was wrong is printed above";
}

TestFolder::TestFolder() {
  std::string pattern = testing::TempDir() + "anydat-registry-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error(pattern + ": " + std::strerror(errno));
  }
  path_ = pattern;
}

TestFolder::~TestFolder() {
  std::filesystem::remove_all(path_);
}

void TestFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string provider_library(const std::string& name) {
  return fmt::format("{}/{}.so", ANYDAT_TEST_PROVIDERS, name);
}

std::string entry_line(const std::string& name, const std::string& library, const std::string& instance_data,
                       const EntryKind& kind) {
  return fmt::format("{} {} {} {} {} test.1.0 \"{}\" \"\"\n", name, kind.api, kind.safety, kind.flag, library,
                     instance_data);
}

StaticRegistryText::StaticRegistryText(const std::string& text) {
  folder_.write("dat.conf", text);
  setenv("DAT_OVERRIDE", folder_.path("dat.conf").c_str(), 1);
}

std::string ProbeLog::instance_data(const std::string& words) const {
  return folder_.path("log") + (words.empty() ? "" : " " + words);
}

std::vector<std::string> ProbeLog::lines() const {
  std::vector<std::string> all;
  std::ifstream file(folder_.path("log"));
  for (std::string line; std::getline(file, line);) {
    all.push_back(line);
  }
  return all;
}

int ProbeLog::count(const std::string& prefix) const {
  const std::vector<std::string> all = lines();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const std::string& line) { return line.starts_with(prefix); }));
}

DAT_PROVIDER_INFO provider_info(const std::string& name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe) {
  DAT_PROVIDER_INFO info{};
  name.copy(info.ia_name, sizeof info.ia_name - 1);
  info.dapl_version_major = major;
  info.dapl_version_minor = minor;
  info.is_thread_safe = thread_safe;
  return info;
}

Opened open_ia(const std::string& name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe) {
  Opened opened;
  std::string writable = name;
  opened.rc = dat_ia_openv(writable.data(), 8, &opened.async_evd, &opened.ia, major, minor, thread_safe);
  return opened;
}

void close_now(const Opened& opened) {
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
}

std::vector<DAT_PROVIDER_INFO> listed() {
  DAT_COUNT count = 0;
  (void)dat_registry_list_providers(0, &count, nullptr);
  // One more than needed, as there may be none.
  std::vector<DAT_PROVIDER_INFO> infos(static_cast<std::size_t>(count) + 1);
  std::vector<DAT_PROVIDER_INFO*> pointers;
  for (DAT_PROVIDER_INFO& info : infos) {
    pointers.push_back(&info);
  }
  const DAT_RETURN rc = dat_registry_list_providers(count + 1, &count, pointers.data());
  if (rc != DAT_SUCCESS) {
    throw std::runtime_error("dat_registry_list_providers: " + describe(rc));
  }
  infos.resize(static_cast<std::size_t>(count));
  return infos;
}

std::vector<std::string> listed_names() {
  std::vector<std::string> names;
  for (const DAT_PROVIDER_INFO& info : listed()) {
    names.emplace_back(info.ia_name);
  }
  return names;
}

std::string adapter_name(DAT_IA_HANDLE ia) {
  DAT_IA_ATTR attr{};
  const DAT_RETURN rc = dat_ia_query(ia, nullptr, DAT_IA_FIELD_IA_ADAPTER_NAME, &attr, 0, nullptr);
  return rc == DAT_SUCCESS ? attr.adapter_name : "dat_ia_query: " + describe(rc);
}

}  // namespace anydat::test
