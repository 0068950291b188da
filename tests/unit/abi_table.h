// SPDX-License-Identifier: BSD-3-Clause
// The ABI tables of tests/data, read at test time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anydat::test {

// One row: its kind ("const", "slot", ...) and all columns, the kind included.
using AbiRow = std::vector<std::string>;

inline constexpr char kAbiTable[] = "abi-x86_64.tsv";    // uDAPL 1.2
inline constexpr char kAbi2Table[] = "abi2-x86_64.tsv";  // uDAPL 2.0

// All rows of one kind, in order. Throws if the file cannot be read, so that no test passes on an empty table.
std::vector<AbiRow> abi_rows(std::string_view kind, const std::string& table = kAbiTable);

// The text of a file below the repository, e.g. "include/dat/dat.h". Throws if it cannot be read.
std::string repository_file(const std::string& path);

}  // namespace anydat::test
