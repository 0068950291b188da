// SPDX-License-Identifier: BSD-3-Clause
#include "unit/abi_table.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace anydat::test {

std::string repository_file(const std::string& path) {
  std::ifstream file(std::string(ANYDAT_TEST_DATA) + "/../../" + path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<AbiRow> abi_rows(std::string_view kind, const std::string& table) {
  std::istringstream text(repository_file("tests/data/" + table));
  std::vector<AbiRow> rows;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() == '#') continue;
    AbiRow row;
    std::istringstream columns(line);
    for (std::string column; std::getline(columns, column, '\t');) row.push_back(column);
    if (row.front() == kind) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace anydat::test
