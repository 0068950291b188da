// SPDX-License-Identifier: BSD-3-Clause
// The one table of environment variables. All share the prefix DAT_; `datinfo --env` prints this table, a script
// compares dat(7) with it, and a DAT_ variable that is not in it, or has a value that means nothing, is warned about
// when an adapter is opened.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace anydat::env {

enum class Variable {
  override_file,   // DAT_OVERRIDE
  dbg_type,        // DAT_DBG_TYPE
  dbg_dest,        // DAT_DBG_DEST
  log,             // DAT_LOG
  wire,            // DAT_WIRE
  compat,          // DAT_COMPAT
  spin_us,         // DAT_SPIN_US
  rnr_timeout_ms,  // DAT_RNR_TIMEOUT_MS
  shm_copy,        // DAT_SHM_COPY
  shm_dir,         // DAT_SHM_DIR
  crc,             // DAT_CRC
  port_range,      // DAT_PORT_RANGE
  tcp_timeout_ms,  // DAT_TCP_TIMEOUT_MS
};

enum class Kind {
  choice,   // one of the words in `values`, which are separated by ", "
  number,   // not negative; or the word that is the default
  text,     // anything
  ignored,  // accepted for old set-ups, without effect
};

struct Entry {
  Variable var;
  const char* name;
  Kind kind;
  const char* values;         // what it can be, for a reader
  const char* default_value;  // what holds while it is unset
  const char* meaning;
};

std::span<const Entry> table();

// The variable's text, empty when unset. A process with raised privileges sees none of them (CONF-8).
std::string_view text(Variable var);
// The variable's number, if it has one that is neither negative nor beyond reason.
std::optional<std::int64_t> number(Variable var);

// The sentence to warn with about one variable of the environment: its name is none of the table's, or its value means
// nothing and the default holds instead. Empty if there is nothing to say, as of any name without the prefix.
// `unset_compat`: what holds while DAT_COMPAT is unset, in which the versions of the interface differ.
std::string complaint(std::string_view name, std::string_view value, std::string_view unset_compat = "default");

// Logs all complaints about the environment, at level warn and once in a process.
void warn_of_environment(std::string_view unset_compat);

}  // namespace anydat::env
