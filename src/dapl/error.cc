// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"

namespace anydat::dapl {

namespace {
thread_local std::array<char, kSentenceBytesMax + 1> last_sentence{};
}

void note_error(std::string_view sentence) {
  const std::size_t length = std::min(sentence.size(), kSentenceBytesMax);
  std::copy_n(sentence.data(), length, last_sentence.data());
  last_sentence[length] = '\0';
  if (base::log_enabled(base::LogLevel::warn)) base::log_line(base::LogLevel::warn, sentence.substr(0, length));
}

DAT_RETURN fail_with(DAT_RETURN type, DAT_RETURN subtype, fmt::string_view format, fmt::format_args args) {
  char text[kSentenceBytesMax];
  const auto result = fmt::vformat_to_n(text, sizeof text, format, args);
  note_error({text, std::min(result.size, sizeof text)});
  return error_code(type, subtype);
}

const char* last_error() {
  return last_sentence.data();
}

}  // namespace anydat::dapl
