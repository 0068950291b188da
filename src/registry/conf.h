// SPDX-License-Identifier: BSD-3-Clause
// The text of a dat.conf (section 2.2 of the rules): characters in, entries out, no file and no environment.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "registry/tuple.h"

namespace anydat::registry {

// One well-formed line.
struct ConfEntry {
  Tuple tuple;              // fields 1 to 3
  bool kernel_api = false;  // field 2 begins with k
  bool is_default = false;
  std::string library;
  std::string provider_version;
  std::string instance_data;
  std::string platform_params;
};

// A line that is neither empty nor an entry, and what is wrong with it (CONF-18).
struct ConfBadLine {
  std::size_t number;  // the first line is 1
  const char* why;     // a constant
};

struct Conf {
  std::vector<ConfEntry> entries;  // in the order of the text, kernel API and nondefault ones too
  std::vector<ConfBadLine> bad_lines;
};

// Never fails: a line that is no entry is put aside.
Conf parse_conf(std::string_view text);

}  // namespace anydat::registry
