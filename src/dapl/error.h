// SPDX-License-Identifier: BSD-3-Clause
// How a refused call says why: one DAT_RETURN and one sentence, made where the cause is known.
#pragma once

#include <dat/udat.h>
#include <fmt/core.h>

#include <string_view>

namespace anydat::dapl {

inline constexpr std::size_t kSentenceBytesMax = 480;

constexpr DAT_RETURN error_code(DAT_RETURN type, DAT_RETURN subtype = DAT_NO_SUBTYPE) {
  return static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | type | subtype;  // RC-2
}

// Remembers the sentence for anydat_last_error() and prints it at DAT_LOG=warn.
void note_error(std::string_view sentence);
const char* last_error();

DAT_RETURN fail_with(DAT_RETURN type, DAT_RETURN subtype, fmt::string_view format, fmt::format_args args);

// Requires: `type` is not one of the everyday outcomes (queue empty, time-out), which say nothing.
template <typename... Args>
DAT_RETURN fail(DAT_RETURN type, DAT_RETURN subtype, fmt::format_string<Args...> format, Args&&... args) {
  return fail_with(type, subtype, format, fmt::make_format_args(args...));
}

}  // namespace anydat::dapl
