// SPDX-License-Identifier: BSD-3-Clause
#include "datinfo/attributes.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "common/connection.h"

namespace datinfo {
namespace {

using Json = nlohmann::ordered_json;

struct Name {
  int value;
  std::string_view text;
};

// The names of the bits that are set; bits without a name are kept visible as a number. A name of value 0 is a kind
// that is always there (virtual memory, best effort) and always listed.
Json names_of_bits(int bits, std::initializer_list<Name> names) {
  Json list = Json::array();
  int unnamed = bits;
  for (const auto& [value, text] : names) {
    if ((bits & value) != value) continue;
    list.push_back(text);
    unnamed &= ~value;
  }
  if (unnamed != 0) list.push_back(fmt::format("{:#x}", unnamed));
  return list;
}

Json name_of_value(int value, std::initializer_list<Name> names) {
  for (const auto& name : names)
    if (name.value == value) return name.text;
  return value;
}

template <std::size_t kSize>
std::string text_of(const char (&characters)[kSize]) {
  const std::string_view all(characters, kSize);
  return std::string(all.substr(0, all.find('\0')));
}

Json named_attributes(DAT_COUNT count, const DAT_NAMED_ATTR* attributes) {
  Json object = Json::object();
  for (DAT_COUNT i = 0; attributes != nullptr && i < count; ++i)
    object[attributes[i].name != nullptr ? attributes[i].name : ""] =
        attributes[i].value != nullptr ? attributes[i].value : "";
  return object;
}

constexpr std::array<std::string_view, 6> kStreams{"software",   "connection_request", "dto",
                                                   "connection", "rmr_bind",           "async"};

// For each stream the list of streams that may share its event dispatcher (EVM-17); itself is left out.
Json stream_merging(const DAT_PROVIDER_ATTR& attributes) {
  Json matrix = Json::object();
  for (std::size_t i = 0; i < kStreams.size(); ++i) {
    Json partners = Json::array();
    for (std::size_t j = 0; j < kStreams.size(); ++j)
      if (i != j && attributes.evd_stream_merging_supported[i][j] != DAT_FALSE) partners.push_back(kStreams[j]);
    matrix[std::string(kStreams[i])] = std::move(partners);
  }
  return matrix;
}

}  // namespace

Json ia_attributes(const DAT_IA_ATTR& a) {
  return {
      {"adapter_name", text_of(a.adapter_name)},
      {"vendor_name", text_of(a.vendor_name)},
      {"hardware_version", fmt::format("{}.{}", a.hardware_version_major, a.hardware_version_minor)},
      {"firmware_version", fmt::format("{}.{}", a.firmware_version_major, a.firmware_version_minor)},
      {"ia_address", tools::address_text(a.ia_address_ptr)},
      {"max_eps", a.max_eps},
      {"max_dto_per_ep", a.max_dto_per_ep},
      {"max_rdma_read_per_ep_in", a.max_rdma_read_per_ep_in},
      {"max_rdma_read_per_ep_out", a.max_rdma_read_per_ep_out},
      {"max_evds", a.max_evds},
      {"max_evd_qlen", a.max_evd_qlen},
      {"max_iov_segments_per_dto", a.max_iov_segments_per_dto},
      {"max_lmrs", a.max_lmrs},
      {"max_lmr_block_size", a.max_lmr_block_size},
      {"max_lmr_virtual_address", fmt::format("{:#x}", a.max_lmr_virtual_address)},
      {"max_pzs", a.max_pzs},
      {"max_message_size", a.max_message_size},
      {"max_rdma_size", a.max_rdma_size},
      {"max_rmrs", a.max_rmrs},
      {"max_rmr_target_address", fmt::format("{:#x}", a.max_rmr_target_address)},
      {"max_srqs", a.max_srqs},
      {"max_ep_per_srq", a.max_ep_per_srq},
      {"max_recv_per_srq", a.max_recv_per_srq},
      {"max_iov_segments_per_rdma_read", a.max_iov_segments_per_rdma_read},
      {"max_iov_segments_per_rdma_write", a.max_iov_segments_per_rdma_write},
      {"max_rdma_read_in", a.max_rdma_read_in},
      {"max_rdma_read_out", a.max_rdma_read_out},
      {"max_rdma_read_per_ep_in_guaranteed", a.max_rdma_read_per_ep_in_guaranteed != DAT_FALSE},
      {"max_rdma_read_per_ep_out_guaranteed", a.max_rdma_read_per_ep_out_guaranteed != DAT_FALSE},
      {"transport_attr", named_attributes(a.num_transport_attr, a.transport_attr)},
      {"vendor_attr", named_attributes(a.num_vendor_attr, a.vendor_attr)},
  };
}

Json provider_attributes(const DAT_PROVIDER_ATTR& a) {
  return {
      {"provider_name", text_of(a.provider_name)},
      {"provider_version", fmt::format("{}.{}", a.provider_version_major, a.provider_version_minor)},
      {"dapl_version", fmt::format("{}.{}", a.dapl_version_major, a.dapl_version_minor)},
      {"lmr_mem_types_supported",
       names_of_bits(a.lmr_mem_types_supported, {{DAT_MEM_TYPE_VIRTUAL, "virtual"},
                                                 {DAT_MEM_TYPE_LMR, "lmr"},
                                                 {DAT_MEM_TYPE_SHARED_VIRTUAL, "shared_virtual"}})},
      {"iov_ownership_on_return", name_of_value(a.iov_ownership_on_return, {{DAT_IOV_CONSUMER, "consumer"},
                                                                            {DAT_IOV_PROVIDER_NOMOD, "provider_nomod"},
                                                                            {DAT_IOV_PROVIDER_MOD, "provider_mod"}})},
      {"dat_qos_supported", names_of_bits(a.dat_qos_supported, {{DAT_QOS_BEST_EFFORT, "best_effort"},
                                                                {DAT_QOS_HIGH_THROUGHPUT, "high_throughput"},
                                                                {DAT_QOS_LOW_LATENCY, "low_latency"},
                                                                {DAT_QOS_ECONOMY, "economy"},
                                                                {DAT_QOS_PREMIUM, "premium"}})},
      {"completion_flags_supported",
       names_of_bits(a.completion_flags_supported, {{DAT_COMPLETION_SUPPRESS_FLAG, "suppress"},
                                                    {DAT_COMPLETION_SOLICITED_WAIT_FLAG, "solicited_wait"},
                                                    {DAT_COMPLETION_UNSIGNALLED_FLAG, "unsignalled"},
                                                    {DAT_COMPLETION_BARRIER_FENCE_FLAG, "barrier_fence"},
                                                    {DAT_COMPLETION_EVD_THRESHOLD_FLAG, "evd_threshold"}})},
      {"is_thread_safe", a.is_thread_safe != DAT_FALSE},
      {"max_private_data_size", a.max_private_data_size},
      {"supports_multipath", a.supports_multipath != DAT_FALSE},
      {"ep_creator", name_of_value(a.ep_creator, {{DAT_PSP_CREATES_EP_NEVER, "never"},
                                                  {DAT_PSP_CREATES_EP_IFASKED, "if_asked"},
                                                  {DAT_PSP_CREATES_EP_ALWAYS, "always"}})},
      {"pz_support", name_of_value(a.pz_support, {{DAT_PZ_UNIQUE, "unique"}, {DAT_PZ_SHAREABLE, "shareable"}})},
      {"optimal_buffer_alignment", a.optimal_buffer_alignment},
      {"evd_stream_merging_supported", stream_merging(a)},
      {"srq_supported", a.srq_supported != DAT_FALSE},
      // These three words use one hexadecimal digit per feature, not one bit (section 0.5 of the rules).
      {"srq_watermarks_supported",
       names_of_bits(a.srq_watermarks_supported,
                     {{0x001, "srq_low"}, {0x010, "ep_soft_high"}, {0x100, "ep_hard_high"}})},
      {"srq_ep_pz_difference_supported", a.srq_ep_pz_difference_supported != DAT_FALSE},
      {"srq_info_supported",
       names_of_bits(a.srq_info_supported, {{0x01, "available_dto_count"}, {0x10, "outstanding_dto_count"}})},
      {"ep_recv_info_supported",
       names_of_bits(a.ep_recv_info_supported, {{0x01, "nbufs_allocated"}, {0x10, "bufs_alloc_span"}})},
      {"lmr_sync_req", a.lmr_sync_req != DAT_FALSE},
      {"dto_async_return_guaranteed", a.dto_async_return_guaranteed != DAT_FALSE},
      {"rdma_write_for_rdma_read_req", a.rdma_write_for_rdma_read_req != DAT_FALSE},
      {"provider_specific_attr", named_attributes(a.num_provider_specific_attr, a.provider_specific_attr)},
  };
}

}  // namespace datinfo
