// SPDX-License-Identifier: BSD-3-Clause
// The static registry: which file it is, and what its entries amount to. Constant once read (CONF-6).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "registry/conf.h"

namespace anydat::registry {

// One of the libraries that may serve an entry.
struct StaticLibrary {
  std::string path;
  std::string instance_data;
};

struct StaticEntry {
  Tuple tuple;
  std::vector<StaticLibrary> libraries;  // tried in this order (CONF-25); at least one
};

// Leaves out what this library does not serve (CONF-21, CONF-22) and makes one entry of all lines with the same tuple,
// in the place of the first (CONF-23, CONF-25).
std::vector<StaticEntry> static_entries(const std::vector<ConfEntry>& lines);

struct StaticRegistry {
  std::vector<StaticEntry> entries;   // with whole names
  std::vector<StaticEntry> patterns;  // D2-CONF-4; never listed
  bool missing = false;  // REG-LIST-9
  // Whether the built-in adapters are part of it, after its entries. They are unless DAT_OVERRIDE names the file: that
  // file is the registry "instead" (CONF-2), so the listing is the file and nothing else, down to no entry at all
  // (CONF-7). They can be opened all the same, as a Provider that is not listed can (RES-9, REG-LIST-13).
  bool lists_builtins = true;
};

// Reads the file at `override_path`, or without that (null) the first of `default_paths` that can be read (CONF-3). No
// default file at all is an ordinary state: the built-in adapters are the registry then.
StaticRegistry read_static_registry(const char* override_path, std::span<const char* const> default_paths);

// The same for this process: DAT_OVERRIDE and the paths the library was built with.
StaticRegistry read_static_registry();

}  // namespace anydat::registry
