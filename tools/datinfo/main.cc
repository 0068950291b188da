// SPDX-License-Identifier: BSD-3-Clause
// datinfo: which interface adapters this machine has, everything each of them says about itself, and the environment
// variables of the library.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/handle.h"
#include "datinfo/attributes.h"
#include "datinfo/environment.h"

namespace datinfo {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> names;  // empty: the list of adapters
  bool all = false;
  bool env = false;
  bool json = false;
};

std::vector<DAT_PROVIDER_INFO> registered_adapters() {
  // REG-LIST-5: a list of no length is refused, with the number there is. REG-LIST-11: that number may have changed by
  // the second call, so ask until the list was long enough.
  DAT_COUNT count = 0;
  DAT_RETURN status = dat_registry_list_providers(0, &count, nullptr);
  for (;;) {
    std::vector<DAT_PROVIDER_INFO> infos(static_cast<std::size_t>(count));
    std::vector<DAT_PROVIDER_INFO*> pointers;
    for (auto& info : infos) pointers.push_back(&info);
    if (count > 0) status = dat_registry_list_providers(count, &count, pointers.data());
    if (status == DAT_SUCCESS || count == 0) {
      infos.resize(static_cast<std::size_t>(count));
      return infos;
    }
    if (static_cast<std::size_t>(count) <= infos.size()) tools::fail(status, "dat_registry_list_providers");
  }
}

// Everything about one adapter; "error" says why when it does not open.
Json inspect(const std::string& name) {
  Json result{{"name", name}};
  std::string writable = name;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE handle = DAT_HANDLE_NULL;
  DAT_RETURN status = dat_ia_open(writable.data(), 8, &async_evd, &handle);
  if (status != DAT_SUCCESS) {
    result["error"] = tools::describe(status);
    return result;
  }
  const tools::Ia ia(handle);
  DAT_IA_ATTR ia_attr{};
  DAT_PROVIDER_ATTR provider_attr{};
  status = dat_ia_query(ia.get(), nullptr, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL, &provider_attr);
  if (status != DAT_SUCCESS) {
    result["error"] = tools::describe(status);
    return result;
  }
  result["ia"] = ia_attributes(ia_attr);
  result["provider"] = provider_attributes(provider_attr);
  return result;
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {
    std::string text;
    for (const auto& element : value) text += (text.empty() ? "" : ", ") + value_text(element);
    return text.empty() ? "none" : text;
  }
  return value.dump();
}

void print_section(const char* title, const Json& section) {
  fmt::print("{}\n", title);
  for (const auto& [name, value] : section.items()) {
    if (!value.is_object()) {
      fmt::print("  {:<36} {}\n", name, value_text(value));
    } else if (value.empty()) {
      fmt::print("  {:<36} none\n", name);
    } else {
      fmt::print("  {}\n", name);
      for (const auto& [inner, text] : value.items()) fmt::print("    {:<34} {}\n", inner, value_text(text));
    }
  }
}

void print_details(const Json& adapter) {
  fmt::print("{}\n", adapter["name"].get<std::string>());
  if (adapter.contains("error")) {
    fmt::print("  does not open: {}\n", adapter["error"].get<std::string>());
    return;
  }
  print_section(" Adapter (DAT_IA_ATTR)", adapter["ia"]);
  print_section(" Provider (DAT_PROVIDER_ATTR)", adapter["provider"]);
}

void print_table(const Json& adapters) {
  fmt::print("{:<20} {:<5} {:<24} {:<4} {}\n", "ADAPTER", "DAT", "ADDRESS", "SRQ", "PROVIDER");
  for (const auto& adapter : adapters) {
    const auto name = adapter["name"].get<std::string>();
    const auto version = adapter.value("dapl_version", "-");
    if (adapter.contains("error")) {
      fmt::print("{:<20} {:<5} does not open: {}\n", name, version, adapter["error"].get<std::string>());
      continue;
    }
    fmt::print("{:<20} {:<5} {:<24} {:<4} {}\n", name, version, value_text(adapter["ia"]["ia_address"]),
               value_text(adapter["provider"]["srq_supported"]), value_text(adapter["provider"]["provider_name"]));
  }
  fmt::print("\ndatinfo --ia NAME shows everything an adapter says about itself.\n");
}

int show_environment(const Options& options) {
  const Json shown = environment();
  if (options.json) {
    fmt::print("{}\n", shown.dump(2));
  } else {
    print_environment(shown);
  }
  return tools::kExitOk;
}

int run(const Options& options) {
  if (options.env) return show_environment(options);
  Json adapters = Json::array();
  if (options.names.empty()) {
    for (const auto& info : registered_adapters()) {
      Json adapter = inspect(info.ia_name);
      adapter["dapl_version"] = fmt::format("{}.{}", info.dapl_version_major, info.dapl_version_minor);
      adapter["thread_safe"] = info.is_thread_safe != DAT_FALSE;
      adapters.push_back(std::move(adapter));
    }
  }
  for (const auto& name : options.names) adapters.push_back(inspect(name));

  if (options.json) {
    fmt::print("{}\n", Json{{"adapters", adapters}}.dump(2));
  } else if (options.names.empty() && !options.all) {
    print_table(adapters);
  } else {
    for (const auto& adapter : adapters) print_details(adapter);
  }

  // Asked for by name, an adapter that does not open is a failure; in a list it is a fact.
  int code = tools::kExitOk;
  for (const auto& name : options.names)
    for (const auto& adapter : adapters)
      if (adapter["name"] == name && adapter.contains("error")) {
        fmt::print(stderr, "datinfo: adapter '{}' does not open: {}\n", name, adapter["error"].get<std::string>());
        code = tools::kExitFailed;
      }
  if (options.names.empty() && adapters.empty()) {
    fmt::print(stderr, "datinfo: the registry lists no adapter\n");
    code = tools::kExitFailed;
  }
  return code;
}

}  // namespace
}  // namespace datinfo

int main(int argc, char** argv) {
  datinfo::Options options;
  CLI::App app("Lists the DAT interface adapters of this machine and what each offers.", "datinfo");
  auto* ia =
      app.add_option("--ia", options.names, "Show everything about this adapter (repeatable)")->type_name("NAME");
  auto* all = app.add_flag("--all", options.all, "Show everything about every adapter");
  app.add_flag("--env", options.env, "Show the environment variables that the library heeds, and their values")
      ->excludes(ia)
      ->excludes(all);
  app.add_flag("--json", options.json, "Print JSON: always everything, for the adapters selected");
  app.footer(tools::examples({"datinfo", "datinfo --ia soft", "datinfo --ia soft-lo --json", "datinfo --env"}));
  return tools::run_tool(app, argc, argv, [&] { return datinfo::run(options); });
}
