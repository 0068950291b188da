// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "env/log.h"

namespace anydat::dapl {

namespace {

thread_local std::array<char, kSentenceBytesMax + 1> last_sentence{};
thread_local std::uint64_t sentence_count = 0;

constexpr std::array kArgumentNames{
    "",
    "async_evd_min_qlen",
    "close_flags",
    "completion_flags",
    "cno_handle",
    "conn_qual",
    "connect_flags",
    "ep_attributes",
    "ep_handle",
    "ep_param",
    "ep_param_mask",
    "event",
    "evd_flags",
    "evd_handle",
    "evd_min_qlen",
    "handoff",
    "hard_high_watermark",
    "ia_flags",
    "length",
    "lmr_handle",
    "lmr_triplet",
    "local_buffer",
    "local_iov",
    "local_segments",
    "low_watermark",
    "mem_priv",
    "mem_privileges",
    "mem_type",
    "nmore",
    "num_segments",
    "private_data_size",
    "psp_flags",
    "psp_handle",
    "pz_handle",
    "region_description",
    "remote_buffer",
    "remote_conn_qual",
    "rmr_handle",
    "rsp_handle",
    "soft_high_watermark",
    "srq_attr",
    "srq_handle",
    "srq_max_recv_dto",
    "threshold",
    "timeout",
};
static_assert(kArgumentNames.size() == static_cast<std::size_t>(Argument::count));

}  // namespace

const char* name_of(Argument argument) {
  return kArgumentNames[static_cast<std::size_t>(argument)];
}

void note_error(std::string_view sentence) {
  const std::size_t length = std::min(sentence.size(), kSentenceBytesMax);
  std::copy_n(sentence.data(), length, last_sentence.data());
  last_sentence[length] = '\0';
  ++sentence_count;
  if (env::log_enabled(env::LogLevel::warn)) env::log_line(env::LogLevel::warn, sentence.substr(0, length));
}

void note_error(fmt::string_view format, fmt::format_args args) {
  char text[kSentenceBytesMax];
  const auto result = fmt::vformat_to_n(text, sizeof text, format, args);
  note_error(std::string_view{text, std::min(result.size, sizeof text)});
}

const char* last_error() {
  return last_sentence.data();
}

std::uint64_t sentences() {
  return sentence_count;
}

}  // namespace anydat::dapl
