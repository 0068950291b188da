// SPDX-License-Identifier: BSD-3-Clause
#include "env/environment.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>

#include "env/log.h"

extern char** environ;

namespace anydat::env {

namespace {

constexpr std::array kTable{
    Entry{Variable::override_file, "DAT_OVERRIDE", Kind::text, "path", "/etc/dat.conf", "the static registry to read"},
    Entry{Variable::log, "DAT_LOG", Kind::choice, "off, error, warn, info, debug", "error",
          "what to print on standard error; warn gives one sentence for each refused call, info also what each "
          "object has counted when it goes"},
    Entry{Variable::wire, "DAT_WIRE", Kind::choice, "auto, shm, tcp", "auto", "the wire a soft adapter connects by"},
    Entry{Variable::compat, "DAT_COMPAT", Kind::choice, "strict, default, openfabrics", "default",
          "what programs may take for granted beside the standard: nothing, what harms nobody, or what OpenFabrics "
          "does as well, by which libdat2.so.2 goes while this is unset"},
    Entry{Variable::spin_us, "DAT_SPIN_US", Kind::number, "microseconds", "50",
          "how long a wait spins before it sleeps"},
    Entry{Variable::rnr_timeout_ms, "DAT_RNR_TIMEOUT_MS", Kind::number, "milliseconds", "unlimited",
          "how long a message waits for a receive buffer before its connection breaks"},
    Entry{Variable::shm_copy, "DAT_SHM_COPY", Kind::choice, "auto, ring", "auto",
          "how large messages cross between processes of one host: ring never copies from process to process"},
    Entry{Variable::shm_dir, "DAT_SHM_DIR", Kind::text, "directory", "none",
          "where processes of one host meet that do not share a network namespace"},
    Entry{Variable::crc, "DAT_CRC", Kind::choice, "auto, on, off", "auto",
          "checksums in iWARP over TCP: auto asks for them between hosts, and a peer that wants them gets them"},
    Entry{Variable::port_range, "DAT_PORT_RANGE", Kind::text, "FIRST-LAST", "32768-60767",
          "the TCP ports that qualifiers nobody has chosen come from, and connections, too, if this is set"},
    Entry{Variable::tcp_timeout_ms, "DAT_TCP_TIMEOUT_MS", Kind::number, "milliseconds", "30000",
          "how long another host may be silent before its connections break: 2000 at least; 0 is for ever"},
    Entry{Variable::dbg_type, "DAT_DBG_TYPE", Kind::ignored, "bit mask", "0x1",
          "accepted for old set-ups, without effect: see DAT_LOG"},
    Entry{Variable::dbg_dest, "DAT_DBG_DEST", Kind::text, "bit mask", "0x1",
          "where dat_ib_print_counters of uDAPL 2.0 prints: 0x1 standard output, 0x2 the system's log, 0x3 both"},
};

constexpr std::string_view kPrefix = "DAT_";

// Whatever unit a number has, more is as good as never, and the caller may turn this one into nanoseconds.
constexpr std::int64_t kNumberMax = 1'000'000'000'000;

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value > kNumberMax) return std::nullopt;
  return value;
}

bool is_one_of(std::string_view words, std::string_view word) {
  constexpr std::string_view kSeparator = ", ";
  for (;;) {
    const std::size_t end = words.find(kSeparator);
    if (words.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    words.remove_prefix(end + kSeparator.size());
  }
}

bool means_something(const Entry& entry, std::string_view value) {
  if (value.empty()) return true;  // the same as unset
  if (entry.kind == Kind::choice) return is_one_of(entry.values, value);
  if (entry.kind == Kind::number) return value == entry.default_value || parse_number(value);
  return true;
}

}  // namespace

std::span<const Entry> table() {
  return kTable;
}

std::string_view text(Variable var) {
  for (const Entry& entry : kTable) {
    if (entry.var == var) {
      const char* text = secure_getenv(entry.name);
      return text ? text : std::string_view{};
    }
  }
  return {};
}

std::optional<std::int64_t> number(Variable var) {
  return parse_number(text(var));
}

std::string complaint(std::string_view name, std::string_view value, std::string_view unset_compat) {
  if (!name.starts_with(kPrefix)) return {};
  for (const Entry& entry : kTable) {
    if (name != entry.name) continue;
    if (means_something(entry, value)) return {};
    return fmt::format("the environment variable {} is '{}' and not {} {}; taking {}", name, value,
                       entry.kind == Kind::choice ? "one of" : "a number of", entry.values,
                       entry.var == Variable::compat ? unset_compat : entry.default_value);
  }
  return fmt::format("the environment variable {} is not known; `datinfo --env` lists all", name);
}

void warn_of_environment(std::string_view unset_compat) {
  static constinit std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    if (end == std::string_view::npos) continue;
    const std::string sentence = complaint(text.substr(0, end), text.substr(end + 1), unset_compat);
    if (!sentence.empty()) log(LogLevel::warn, "{}", sentence);
  }
}

}  // namespace anydat::env
