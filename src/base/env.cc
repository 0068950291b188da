// SPDX-License-Identifier: BSD-3-Clause
#include "base/env.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>

#include "base/log.h"

extern char** environ;

namespace anydat::base {

namespace {

constexpr std::array kTable{
    EnvEntry{EnvVar::override_file, "DAT_OVERRIDE", "path", "the static registry to read instead of /etc/dat.conf"},
    EnvEntry{EnvVar::dbg_type, "DAT_DBG_TYPE", "bit mask", "accepted for old set-ups, without effect: see DAT_LOG"},
    EnvEntry{EnvVar::dbg_dest, "DAT_DBG_DEST", "bit mask", "accepted for old set-ups, without effect: see DAT_LOG"},
    EnvEntry{EnvVar::log, "DAT_LOG", "off, error, warn, info, debug",
             "what to print on standard error; warn gives one sentence for each refused call (default: error)"},
    EnvEntry{EnvVar::wire, "DAT_WIRE", "auto, shm, tcp", "the wire a soft adapter connects by (default: auto)"},
    EnvEntry{EnvVar::spin_us, "DAT_SPIN_US", "microseconds", "how long a wait spins before it sleeps (default: 50)"},
    EnvEntry{EnvVar::rnr_timeout_ms, "DAT_RNR_TIMEOUT_MS", "unlimited, or milliseconds",
             "how long a message waits for a receive buffer before its connection breaks (default: unlimited)"},
    EnvEntry{EnvVar::shm_copy, "DAT_SHM_COPY", "auto, ring",
             "how large messages cross between processes of one host: ring never copies from process to process "
             "(default: auto)"},
};

}  // namespace

std::span<const EnvEntry> env_table() {
  return kTable;
}

std::string_view env_text(EnvVar var) {
  for (const EnvEntry& entry : kTable) {
    if (entry.var == var) {
      const char* text = secure_getenv(entry.name);
      return text ? text : std::string_view{};
    }
  }
  return {};
}

std::optional<std::int64_t> env_number(EnvVar var) {
  const std::string_view text = env_text(var);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void warn_of_unknown_variables() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (char** entry = environ; entry && *entry; ++entry) {
      const std::string_view text = *entry;
      if (!text.starts_with("DAT_")) continue;
      const std::string_view name = text.substr(0, text.find('='));
      bool known = false;
      for (const EnvEntry& row : kTable) known = known || name == row.name;
      if (!known) log(LogLevel::warn, "the environment variable {} is not known; `datinfo --env` lists all", name);
    }
  });
}

}  // namespace anydat::base
