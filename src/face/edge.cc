// SPDX-License-Identifier: BSD-3-Clause
#include "face/edge.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace anydat::face {

namespace {

// Where a parameter stands among `names`, "(first, second)", counted from 1; 0 if it is not there.
unsigned place_of(std::string_view wanted, std::string_view names) {
  constexpr std::string_view kBetween = "(), ";
  unsigned place = 0;
  for (std::size_t begin = names.find_first_not_of(kBetween); begin != std::string_view::npos;) {
    ++place;
    const std::size_t end = std::min(names.find_first_of(kBetween, begin), names.size());
    if (names.substr(begin, end - begin) == wanted) return place;
    begin = names.find_first_not_of(kBetween, end);
  }
  return 0;
}

}  // namespace

DAT_RETURN return_code(dapl::Error error, const char* names) {
  const dapl::Argument argument = error.argument();
  if (argument == dapl::Argument::none) return error.upper_half() | subtype_of(error.detail());
  const unsigned place = argument > dapl::Argument::count
                             ? static_cast<unsigned>(argument) - static_cast<unsigned>(at(0))
                             : place_of(dapl::name_of(argument), names);
  // The interface names the first ten places.
  const bool named = place >= 1 && place <= 10;
  return error.upper_half() | (named ? DAT_INVALID_ARG1 + place - 1 : static_cast<DAT_RETURN>(DAT_NO_SUBTYPE));
}

}  // namespace anydat::face
