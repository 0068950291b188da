// SPDX-License-Identifier: BSD-3-Clause
// How a refused call says why: what kind of error it is, which state, resource or argument is meant, and one sentence,
// made where the cause is known.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string_view>

namespace anydat::dapl {

inline constexpr std::size_t kSentenceBytesMax = 480;

// The type of a return code. The numbers are those of both versions of the interface; the last two are 2.0's alone.
enum class Code : std::uint32_t {
  abort = 0x00010000,
  conn_qual_in_use = 0x00020000,
  insufficient_resources = 0x00030000,
  internal_error = 0x00040000,
  invalid_handle = 0x00050000,
  invalid_parameter = 0x00060000,
  invalid_state = 0x00070000,
  length_error = 0x00080000,
  model_not_supported = 0x00090000,
  provider_not_found = 0x000a0000,
  privileges_violation = 0x000b0000,
  protection_violation = 0x000c0000,
  queue_empty = 0x000d0000,
  queue_full = 0x000e0000,
  timeout_expired = 0x000f0000,
  provider_already_registered = 0x00100000,
  provider_in_use = 0x00110000,
  invalid_address = 0x00120000,
  interrupted_call = 0x00130000,
  conn_qual_unavailable = 0x00140000,
  port_in_use = 0x00160000,
  comm_not_supported = 0x00170000,
};

// The subtype, as far as it is not the place of an argument. The numbers are those of version 1.2; a face whose version
// numbers them otherwise converts them.
enum class Detail : std::uint8_t {
  none = 0,
  memory = 2,
  device,
  endpoint,
  evd,
  protection_domain,
  memory_region,
  srq = 10,
  handle_ia = 11,
  handle_ep,
  handle_lmr,
  handle_rmr,
  handle_pz,
  handle_psp,
  handle_rsp,
  handle_cr,
  handle_cno,
  handle_evd_cr,
  handle_evd_request,
  handle_evd_recv,
  handle_evd_conn,
  handle_evd_async,
  handle_srq,
  ep_unconnected = 46,
  ep_active_pending,
  ep_passive_pending,
  ep_tentative_pending,
  ep_connected,
  ep_disconnected,
  ep_reserved,
  ep_completion_pending,
  ep_disconnect_pending,
  ep_not_ready = 56,
  cno_in_use = 66,
  evd_unwaitable = 72,
  evd_in_use,
  evd_config_notify,
  evd_config_solicited,
  evd_waiter = 77,
  ia_in_use = 79,
  lmr_in_use,
  pz_in_use = 82,
  srq_in_use = 86,
  privileges_read,
  privileges_write,
  address_unsupported = 95,
  address_unreachable,
  address_malformed,
  name_not_registered = 98,
  handle_csp = 255,  // of version 2.0 alone
};

// An argument, by its name in the interface. Where it stands in a call is the face's knowledge.
enum class Argument : std::uint8_t {
  none,
  async_evd_min_qlen,
  close_flags,
  completion_flags,
  cno_handle,
  conn_qual,
  connect_flags,
  ep_attributes,
  ep_handle,
  ep_param,
  ep_param_mask,
  event,
  evd_flags,
  evd_handle,
  evd_min_qlen,
  handoff,
  hard_high_watermark,
  ia_flags,
  length,
  lmr_handle,
  lmr_triplet,
  local_buffer,
  local_iov,
  local_segments,
  low_watermark,
  mem_priv,
  mem_privileges,
  mem_type,
  nmore,
  num_segments,
  private_data_size,
  psp_flags,
  psp_handle,
  pz_handle,
  region_description,
  remote_buffer,
  remote_conn_qual,
  rmr_handle,
  rsp_handle,
  soft_high_watermark,
  srq_attr,
  srq_handle,
  srq_max_recv_dto,
  threshold,
  timeout,
  count,  // how many there are
};
const char* name_of(Argument argument);

// What a call has come to. True: it was refused. One word, so that it travels in a register: the class bit of errors
// and the type where a return code of the interface has them, then the argument, then the detail.
class [[nodiscard]] Error {
 public:
  static constexpr std::uint32_t kClassBit = 0x80000000u;  // RC-2

  constexpr Error() = default;
  constexpr explicit Error(Code code, Detail detail = Detail::none)
      : word_(kClassBit | static_cast<std::uint32_t>(code) | static_cast<std::uint32_t>(detail)) {}
  constexpr Error(Code code, Argument argument)
      : word_(kClassBit | static_cast<std::uint32_t>(code) | static_cast<std::uint32_t>(argument) << 8) {}
  // An everyday outcome that is no error to those who poll (Habits::codes_without_class).
  static constexpr Error everyday(Code code, bool with_class) {
    Error error(code);
    if (!with_class) error.word_ &= ~kClassBit;
    return error;
  }

  constexpr explicit operator bool() const { return word_ != 0; }
  // As in a return code: class and type.
  constexpr std::uint32_t upper_half() const { return word_ & 0xffff0000u; }
  constexpr Detail detail() const { return static_cast<Detail>(word_ & 0xff); }
  constexpr Argument argument() const { return static_cast<Argument>(word_ >> 8 & 0xff); }
  // The return code of version 1.2, unless an argument is named.
  constexpr std::uint32_t word() const { return word_; }

 private:
  std::uint32_t word_ = 0;
};
inline constexpr Error kSuccess{};

// Remembers the sentence for anydat_last_error() and prints it at DAT_LOG=warn.
void note_error(std::string_view sentence);
void note_error(fmt::string_view format, fmt::format_args args);
const char* last_error();
std::uint64_t sentences();  // that the calling thread has been told so far

// Requires: `code` is not one of the everyday outcomes (queue empty, time-out), which say nothing.
template <typename... Args>
Error fail(Code code, Detail detail, fmt::format_string<Args...> format, Args&&... args) {
  note_error(format, fmt::make_format_args(args...));
  return Error(code, detail);
}
template <typename... Args>
Error fail(Argument argument, fmt::format_string<Args...> format, Args&&... args) {
  note_error(format, fmt::make_format_args(args...));
  return Error(Code::invalid_parameter, argument);
}

// The same for those who know the numbers of their version of the interface: the registry and the faces.
constexpr std::uint32_t error_code(std::uint32_t type, std::uint32_t subtype = 0) {
  return Error::kClassBit | type | subtype;
}
template <typename... Args>
std::uint32_t fail(std::uint32_t type, std::uint32_t subtype, fmt::format_string<Args...> format, Args&&... args) {
  note_error(format, fmt::make_format_args(args...));
  return error_code(type, subtype);
}

}  // namespace anydat::dapl
