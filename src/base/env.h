// SPDX-License-Identifier: BSD-3-Clause
// The one table of environment variables. All share the prefix DAT_; `datinfo --env` prints this table, and a DAT_
// variable that is not in it is warned about when an adapter is opened.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace anydat::base {

enum class EnvVar {
  override_file,   // DAT_OVERRIDE
  dbg_type,        // DAT_DBG_TYPE
  dbg_dest,        // DAT_DBG_DEST
  log,             // DAT_LOG
  wire,            // DAT_WIRE
  spin_us,         // DAT_SPIN_US
  rnr_timeout_ms,  // DAT_RNR_TIMEOUT_MS
  shm_copy,        // DAT_SHM_COPY
};

struct EnvEntry {
  EnvVar var;
  const char* name;
  const char* values;
  const char* meaning;
};

std::span<const EnvEntry> env_table();

// The variable's text, empty when unset. A process with raised privileges sees none of them (CONF-8).
std::string_view env_text(EnvVar var);
std::optional<std::int64_t> env_number(EnvVar var);

// Warns once for each DAT_ variable of the environment that the table does not know.
void warn_of_unknown_variables();

}  // namespace anydat::base
