// SPDX-License-Identifier: BSD-3-Clause
// The environment variables of the library, as it tells them itself.
#ifndef ANYDAT_TOOLS_DATINFO_ENVIRONMENT_H
#define ANYDAT_TOOLS_DATINFO_ENVIRONMENT_H

#include <nlohmann/json.hpp>

namespace datinfo {

// {"variables": [...], "unknown": [...]}: all that the library heeds, with their present values (null: unset), and the
// names in our own environment that look like one of them and are none.
nlohmann::ordered_json environment();
void print_environment(const nlohmann::ordered_json& environment);

}  // namespace datinfo

#endif
