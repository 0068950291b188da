// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the registry have in common. The registry is one for the whole process and reads its file once
// (CONF-6), so each test is a process of its own.
#pragma once

#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/dat_matchers.h"
#include "support/peer_process.h"

namespace anydat::test {

// Plays the role in a new process, which must find nothing wrong.
void run_alone(const std::string& role);

// A test whose body is the whole life of a process.
#define REGISTRY_TEST(suite, name)                                                                         \
  void body_of_##suite##_##name();                                                                         \
  const Role role_of_##suite##_##name(#suite "." #name, [](RoleContext&) { body_of_##suite##_##name(); }); \
  TEST(suite, name) {                                                                                      \
    run_alone(#suite "." #name);                                                                           \
  }                                                                                                        \
  void body_of_##suite##_##name()

// A folder for the files of a test, removed with them.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return path_ / name; }
  void write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// The file of a library that tests/providers builds.
std::string provider_library(const std::string& name);

// Fields 2 to 4 of an entry.
struct EntryKind {
  std::string api = "u1.2";
  std::string safety = "nonthreadsafe";
  std::string flag = "default";
};

// One line of a dat.conf.
std::string entry_line(const std::string& name, const std::string& library, const std::string& instance_data = "",
                       const EntryKind& kind = {});

// Writes the text into a file and makes that the static registry of this process.
// Requires: the process has not called DAT yet.
class StaticRegistryText {
 public:
  explicit StaticRegistryText(const std::string& text);

 private:
  TestFolder folder_;
};

// What probes (tests/providers/probe.c) have written down.
class ProbeLog {
 public:
  // Instance data by which a probe writes here and does as the words say.
  std::string instance_data(const std::string& words = "") const;
  std::vector<std::string> lines() const;
  int count(const std::string& prefix) const;  // of lines that begin so

 private:
  TestFolder folder_;
};

DAT_PROVIDER_INFO provider_info(const std::string& name, DAT_UINT32 major = DAT_VERSION_MAJOR,
                                DAT_UINT32 minor = DAT_VERSION_MINOR, DAT_BOOLEAN thread_safe = DAT_FALSE);

// dat_ia_openv with an async EVD to be made; the handles are left for the test to look at.
struct Opened {
  DAT_RETURN rc = DAT_SUCCESS;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
};
Opened open_ia(const std::string& name, DAT_UINT32 major = DAT_VERSION_MAJOR, DAT_UINT32 minor = DAT_VERSION_MINOR,
               DAT_BOOLEAN thread_safe = DAT_FALSE);
// Gracefully; expects success.
void close_now(const Opened& opened);

// Everything dat_registry_list_providers has. Throws if it does not succeed.
std::vector<DAT_PROVIDER_INFO> listed();
std::vector<std::string> listed_names();

std::string adapter_name(DAT_IA_HANDLE ia);

}  // namespace anydat::test
