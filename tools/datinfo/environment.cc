// SPDX-License-Identifier: BSD-3-Clause
#include "datinfo/environment.h"

#include <anydat/anydat.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

extern char** environ;

namespace datinfo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "DAT_";

std::vector<ANYDAT_VARIABLE> variables() {
  DAT_COUNT count = 0;
  tools::check(anydat_get_environment(0, nullptr, &count), "anydat_get_environment");
  std::vector<ANYDAT_VARIABLE> all(static_cast<std::size_t>(count));
  tools::check(anydat_get_environment(count, all.data(), &count), "anydat_get_environment");
  return all;
}

}  // namespace

Json environment() {
  const std::vector<ANYDAT_VARIABLE> known = variables();
  Json list = Json::array();
  for (const auto& variable : known) {
    Json row{{"name", variable.name},
             {"meaning", variable.meaning},
             {"values", variable.values},
             {"default", variable.default_value},
             {"value", nullptr}};
    if (variable.value != nullptr) row["value"] = variable.value;
    list.push_back(std::move(row));
  }
  Json unknown = Json::array();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with(kPrefix)) continue;
    if (std::none_of(known.begin(), known.end(), [&](const auto& variable) { return name == variable.name; }))
      unknown.push_back(name);
  }
  return {{"variables", std::move(list)}, {"unknown", std::move(unknown)}};
}

void print_environment(const Json& environment) {
  for (const auto& variable : environment["variables"]) {
    fmt::print("{}\n", variable["name"].get<std::string>());
    for (const auto* key : {"meaning", "values", "default", "value"})
      if (!variable[key].is_null()) fmt::print("  {:<8} {}\n", key, variable[key].get<std::string>());
  }
  for (const auto& name : environment["unknown"])
    fmt::print("{}\n  is set, but is not known\n", name.get<std::string>());
}

}  // namespace datinfo
