// SPDX-License-Identifier: BSD-3-Clause
#include "footprint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/patience.h"

namespace anydat::test {
namespace {

namespace fs = std::filesystem;

int entries_of(const fs::path& folder) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    ++count;
  }
  return count;
}

template <typename Predicate>
int lines_of(const char* file, Predicate&& predicate) {
  std::ifstream in(file);
  int count = 0;
  for (std::string line; std::getline(in, line);) {
    count += predicate(line) ? 1 : 0;
  }
  return count;
}

}  // namespace

Footprint Footprint::here() {
  Footprint footprint;
  footprint.descriptors = entries_of("/proc/self/fd") - 1;  // without the one that reads the folder
  footprint.segments = lines_of("/proc/self/maps",
                                [](const std::string& line) { return line.find("memfd:anydat") != std::string::npos; });
  footprint.threads = entries_of("/proc/self/task");
  return footprint;
}

std::ostream& operator<<(std::ostream& out, const Footprint& footprint) {
  return out << footprint.descriptors << " descriptors, " << footprint.segments << " segments, " << footprint.threads
             << " threads";
}

void expect_back_to(const Footprint& before, Caller caller) {
  Footprint now;
  if (!eventually([&] { return (now = Footprint::here()) == before; })) {
    ADD_FAILURE_AT(caller.file, caller.line) << "left behind: " << now << "; before it was " << before;
  }
}

int sockets_of(DAT_CONN_QUAL qualifier) {
  const std::string end = fmt::format("/{}", static_cast<unsigned long long>(qualifier));
  return lines_of("/proc/net/unix", [&](const std::string& line) {
    return line.find("@anydat/") != std::string::npos && line.ends_with(end);
  });
}

std::chrono::microseconds processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto in_all = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return in_all(usage.ru_utime) + in_all(usage.ru_stime);
}

int files_left() {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/dev/shm", error), end; !error && entry != end; entry.increment(error)) {
    count += entry->path().filename().string().find("anydat") != std::string::npos ? 1 : 0;
  }
  return count;
}

}  // namespace anydat::test
