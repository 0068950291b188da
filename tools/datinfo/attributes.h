// SPDX-License-Identifier: BSD-3-Clause
// What dat_ia_query reports, as named values in the order of the standard's structures.
#ifndef ANYDAT_TOOLS_DATINFO_ATTRIBUTES_H
#define ANYDAT_TOOLS_DATINFO_ATTRIBUTES_H

#include <dat/udat.h>

#include <nlohmann/json.hpp>

namespace datinfo {

// Member names are the standard's; flag words become lists of names, booleans booleans, addresses text.
nlohmann::ordered_json ia_attributes(const DAT_IA_ATTR& attributes);
nlohmann::ordered_json provider_attributes(const DAT_PROVIDER_ATTR& attributes);

}  // namespace datinfo

#endif
