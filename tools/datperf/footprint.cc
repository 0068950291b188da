// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/footprint.h"

#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

namespace datperf {
namespace {

// The sum of these entries of a file whose lines read "Name:   123 kB".
std::uint64_t sum_of(const char* file, std::initializer_list<std::string_view> names) {
  std::ifstream lines(file);
  std::uint64_t kib = 0;
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view name : names) {
      if (!line.starts_with(name) || line[name.size()] != ':') continue;
      kib += std::stoull(line.substr(name.size() + 1));
    }
  }
  return kib * 1024;
}

// "TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1": pages that hold what travels.
std::uint64_t tcp_buffers() {
  std::ifstream lines("/proc/net/sockstat");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("TCP:")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word != "mem") continue;
      std::uint64_t pages = 0;
      words >> pages;
      return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    }
  }
  return 0;
}

}  // namespace

Footprint footprint() {
  return {.private_bytes = sum_of("/proc/self/smaps_rollup", {"Private_Clean", "Private_Dirty", "Private_Hugetlb"}),
          .system_bytes = sum_of("/proc/meminfo", {"Slab", "Shmem"}) + tcp_buffers()};
}

Footprint operator-(const Footprint& after, const Footprint& before) {
  const auto growth = [](std::uint64_t now, std::uint64_t then) { return now > then ? now - then : 0; };
  return {.private_bytes = growth(after.private_bytes, before.private_bytes),
          .system_bytes = growth(after.system_bytes, before.system_bytes)};
}

}  // namespace datperf
