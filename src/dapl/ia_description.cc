// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ia_description.h"

#include <fmt/format.h>

#include <algorithm>

namespace anydat::dapl {

namespace {

// What programs written for OpenFabrics' Providers look for by name (D2-IA-7), as far as it is true of every adapter.
constexpr NamedAttribute kOpenFabricsAttributes[] = {
    {"DAT_IB_RDMA_READ", "TRUE"},
    {"DAT_IB_CONNECTIVITY_MODE", "DIRECT"},
};

// Four groups of 16 bits.
std::string text_of_guid(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff,
                     guid & 0xffff);
}

// What programs of the InfiniBand extension look for by name (D2-EXT-1, D2-IA-6).
constexpr NamedAttribute kExtensionAttribute{"DAT_EXTENSION_INTERFACE", "TRUE"};
constexpr NamedAttribute kImmediateAttribute{"DAT_IB_IMMED_DATA", "TRUE"};
constexpr NamedAttribute kAtomicAttributes[] = {{"DAT_IB_FETCH_AND_ADD", "TRUE"}, {"DAT_IB_CMP_AND_SWAP", "TRUE"}};
constexpr NamedAttribute kCountersAttribute{"DAT_COUNTERS", "TRUE"};

Limits limits_of(const nic::AdapterLimits& nic) {
  Limits limits;
  const auto lower = []<typename T>(T& ours, std::uint64_t theirs) {
    if (static_cast<std::uint64_t>(ours) > theirs) ours = static_cast<T>(theirs);
  };
  lower(limits.max_eps, nic.queue_pairs);
  lower(limits.max_ep_per_srq, nic.queue_pairs);
  lower(limits.max_dto_per_ep, std::min(nic.send_depth, nic.recv_depth));
  lower(limits.max_rdma_reads_per_ep, nic.reads);
  lower(limits.max_iov, nic.segments);
  lower(limits.max_lmrs, nic.regions);
  lower(limits.max_rmrs, nic.regions);
  lower(limits.max_lmr_block_size, nic.region_bytes);
  lower(limits.max_message_size, nic.message_bytes);
  lower(limits.max_rdma_size, nic.message_bytes);
  lower(limits.max_srqs, nic.receive_queues);
  lower(limits.max_recv_per_srq, nic.receive_queue_depth);
  return limits;
}

}  // namespace

Description::Description(const AdapterKind& kind, std::string name, const nic::AdapterInfo& info)
    : kind_(kind), name_(std::move(name)), info_(info), limits_(limits_of(info.limits)) {
  receiver_not_ready_ = info.receiver_not_ready_ns == os::kForever
                            ? "unlimited"
                            : fmt::format("{}", (info.receiver_not_ready_ns + 999'999) / 1'000'000);
  std::vector<NamedAttribute>& all = named_attributes_;
  all = {
      {"ANYDAT_RECEIVER_NOT_READY_MS", receiver_not_ready_.c_str()},
      {"ANYDAT_SEND_COMPLETES", info.sends_complete_at_receiver ? "received" : "sent"},
      {"ANYDAT_SOLICITED", info.tells_solicited ? "as sent" : "always"},
      {"ANYDAT_REMOTE_ERRORS", info.tells_remote_errors ? "told" : "not told"},
      {"ANYDAT_ACCEPT_COMPLETES", info.confirms_accepts ? "confirmed" : "at once"},
      {"ANYDAT_PEER_DEATH", info.tells_deaths ? "broken" : "disconnected or broken"},
  };
  const auto add = [&all](std::span<const NamedAttribute> more) { all.insert(all.end(), more.begin(), more.end()); };
  constexpr std::uint32_t kExtension = nic::ability::kImmediate | nic::ability::kAtomics;
  if ((abilities() & kExtension) == kExtension) all.push_back(kExtensionAttribute);
  if ((abilities() & nic::ability::kImmediate) != 0) all.push_back(kImmediateAttribute);
  if ((abilities() & nic::ability::kAtomics) != 0) add(kAtomicAttributes);
  if (kind_.extended) all.push_back(kCountersAttribute);  // what it tells is counted above the NIC, or by every NIC
  if (kind_.habits.openfabrics_attributes) {
    add(kOpenFabricsAttributes);
    const nic::DevicePort& port = info_.port;
    texts_ = {fmt::format("{}", port.mtu), text_of_guid(port.node_guid), fmt::format("{}", port.number)};
    all.push_back({"DAT_IB_TRANSPORT_MTU", texts_[0].c_str()});
    all.push_back({"DAT_IB_NODE_GUID", texts_[1].c_str()});
    all.push_back({"DAT_IB_PORT_NUMBER", texts_[2].c_str()});
    all.push_back({"DAT_IB_PORT_STATUS", port.state});
  }
}

ProviderAttributes Description::provider_attributes() const {
  return {info_.qos_supported,
          completion::kAll,
          kind_.thread_safe,
          kind_.api_minor_version,
          static_cast<Count>(info_.private_data_max),
          shared_queues(),
          info_.has_watermarks,
          info_.shared_queue_of_any_zone,
          info_.counts_taken_buffers,
          endpoint_windows(),
          static_cast<Count>(named_attributes_.size()),
          named_attributes_.data()};
}

Error no_adapter(const char* call, const char* name, const AdapterKind& kind, nic::Status status,
                 const std::string& why) {
  if (!why.empty()) return fail(Code::insufficient_resources, Detail::device, "{}: {}: {}", call, name, why);
  if (status == nic::Status::unsupported) {
    return fail(Code::provider_not_found, Detail::name_not_registered, "{}: {}: this host has no adapter {}", call,
                name, kind.adapter);
  }
  return fail(Code::insufficient_resources, Detail::device, "{}: no memory, thread or descriptors for {}", call, name);
}

}  // namespace anydat::dapl
