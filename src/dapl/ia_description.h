// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/habits.h"
#include "nic/adapter.h"

namespace anydat::dapl {

// What an adapter allows. The same numbers are reported by dat_ia_query and enforced.
struct Limits {
  Count max_eps = 1 << 17;
  Count max_dto_per_ep = 1 << 16;
  Count max_rdma_reads_per_ep = 128;
  Count max_rdma_reads = 1 << 20;
  Count max_evds = 1 << 16;
  Count max_evd_qlen = 1 << 20;
  Count max_iov = 64;
  Count max_lmrs = (1 << 20) - 1;
  std::uint64_t max_lmr_block_size = std::uint64_t{1} << 46;
  std::uint64_t max_virtual_address = (std::uint64_t{1} << 56) - 1;
  Count max_pzs = 1 << 16;
  std::uint64_t max_message_size = std::uint64_t{1} << 31;
  std::uint64_t max_rdma_size = std::uint64_t{1} << 31;
  Count max_rmrs = (1 << 20) - 1;
  Count max_srqs = 4096;
  Count max_ep_per_srq = 1 << 17;
  Count max_recv_per_srq = 1 << 20;
  Count max_cnos = 1 << 16;
  Count max_service_points = 1 << 16;
};

// What the registration says that an adapter is opened, or asked about, through. An adapter may be registered under a
// name of the administrator's choice, so the name that programs see (IA-ATTR-1) and the adapter's are two things.
struct AdapterKind {
  // Where there is more to say than the status, `why` is one sentence. Status::unsupported: there is no such adapter.
  using Factory = std::unique_ptr<nic::Adapter> (*)(const std::string& name, nic::Status& status, std::string& why);
  using Inquiry = nic::Status (*)(const std::string& name, nic::AdapterInfo& info, std::string& why);

  const void* table;                // what the handles point to (HND-9); lasts for the life of the process
  Factory make;                     // makes the NIC for an adapter's name; null if that fails
  Inquiry ask;                      // what that NIC would be, without making it
  std::string adapter;              // what the two are given
  std::uint32_t api_minor_version;  // reported as dapl_version_minor (PRV-ATTR-5)
  bool thread_safe;                 // reported as is_thread_safe (PRV-ATTR-6)
  Habits habits;                    // what its program may take for granted
  bool extended;                    // its program can ask for, and be shown, what not every adapter carries
};

// An adapter under the name that a program knows it by, as dat_ia_query describes it. Nothing of it ever changes.
class Description {
 public:
  Description(const AdapterKind& kind, std::string name, const nic::AdapterInfo& info);
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  const AdapterKind& kind() const { return kind_; }
  const std::string& name() const { return name_; }
  const Limits& limits() const { return limits_; }
  const nic::Address& address() const { return info_.address; }
  // Whether there are SRQs: not with a device that has none (SRQ-CREATE-15).
  bool shared_queues() const { return limits_.max_srqs > 0; }
  // What the adapter can (nic::ability), of what its program can make use of.
  std::uint32_t abilities() const { return kind_.extended ? info_.abilities : 0; }
  // Whether bytes of a region, or of a window, can be named by their offset (D2-LMR-2, D2-RMR-7).
  bool zero_based() const { return kind_.extended && info_.zero_based; }
  // Whether a window can be the sink of a Read (D2-READRMR): where the library's own table says what a key opens, and
  // no device's, which tells local from remote keys.
  bool reads_into_windows() const { return zero_based(); }
  // What a region may be registered with (D2-LMR-7).
  Privileges privileges() const {
    return kAllPrivileges | ((abilities() & nic::ability::kAtomics) != 0 ? nic::access::kRemoteAtomic : 0);
  }
  // Whether a window can be one endpoint's alone (D2-RMR-1).
  bool endpoint_windows() const { return kind_.extended && info_.queue_pair_windows; }
  // The named ones last as long as this.
  ProviderAttributes provider_attributes() const;

 private:
  const AdapterKind kind_;
  const std::string name_;
  const nic::AdapterInfo info_;
  const Limits limits_;
  std::array<std::string, 3> texts_;  // of attributes
  std::string receiver_not_ready_;    // the text of its attribute
  std::vector<NamedAttribute> named_attributes_;
};

// The sentence and the code for an adapter that cannot be opened or asked.
Error no_adapter(const char* call, const char* name, const AdapterKind& kind, nic::Status status,
                 const std::string& why);

}  // namespace anydat::dapl
