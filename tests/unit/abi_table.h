// SPDX-License-Identifier: BSD-3-Clause
// The ABI table of tests/data, read at test time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anydat::test {

// One row: its kind ("const", "slot", ...) and all columns, the kind included.
using AbiRow = std::vector<std::string>;

// All rows of one kind, in order. Throws if the file cannot be read, so that no test passes on an empty table.
std::vector<AbiRow> abi_rows(std::string_view kind);

// The text of a file below the repository, e.g. "include/dat/dat.h". Throws if it cannot be read.
std::string repository_file(const std::string& path);

}  // namespace anydat::test
