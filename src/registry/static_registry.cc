// SPDX-License-Identifier: BSD-3-Clause
#include "registry/static_registry.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "env/environment.h"
#include "env/log.h"
#include "os/named_file.h"

namespace anydat::registry {

namespace {

// A packager may configure a directory of its own (CONF-3).
#ifdef ANYDAT_SYSCONFDIR
constexpr std::array kDefaultPaths{ANYDAT_SYSCONFDIR "/dat.conf", "/etc/dat.conf"};
#else
constexpr std::array kDefaultPaths{"/etc/dat.conf"};
#endif

void read_entries(const char* path, const std::string& text, StaticRegistry& registry) {
  const Conf conf = parse_conf(text);
  for (const ConfBadLine& line : conf.bad_lines) {
    env::log(env::LogLevel::warn, "{}:{}: {}; the line is ignored", path, line.number, line.why);
  }
  for (StaticEntry& entry : static_entries(conf.entries)) {
    (is_pattern(entry.tuple) ? registry.patterns : registry.entries).push_back(std::move(entry));
  }
}

}  // namespace

std::vector<StaticEntry> static_entries(const std::vector<ConfEntry>& lines) {
  std::vector<StaticEntry> entries;
  for (const ConfEntry& line : lines) {
    if (line.kernel_api || !line.is_default) continue;
    auto entry = std::find_if(entries.begin(), entries.end(),
                              [&](const StaticEntry& earlier) { return earlier.tuple == line.tuple; });
    if (entry == entries.end()) entry = entries.insert(entry, StaticEntry{line.tuple, {}});
    entry->libraries.push_back({line.library, line.instance_data});
  }
  return entries;
}

StaticRegistry read_static_registry(const char* override_path, std::span<const char* const> default_paths) {
  StaticRegistry registry;
  if (override_path) {
    registry.lists_builtins = false;
    if (const auto text = os::read_file(override_path)) {
      read_entries(override_path, *text, registry);
    } else {
      registry.missing = true;  // CONF-4
      env::log(env::LogLevel::warn, "DAT_OVERRIDE names {}: {}", override_path, strerrordesc_np(errno));
    }
    return registry;
  }
  for (const char* path : default_paths) {
    if (const auto text = os::read_file(path)) {
      read_entries(path, *text, registry);
      break;
    }
  }
  return registry;
}

StaticRegistry read_static_registry() {
  // An empty value is a value, the path of no file (CONF-4). Unset, or set in a privileged process (CONF-8), the text
  // has no address either.
  return read_static_registry(env::text(env::Variable::override_file).data(), kDefaultPaths);
}

}  // namespace anydat::registry
