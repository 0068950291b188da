// SPDX-License-Identifier: BSD-3-Clause
#include "common/adapter.h"

#include <anydat/anydat.h>

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "common/error.h"

namespace tools {
namespace {

constexpr DAT_COUNT kAsyncQueueLength = 64;
constexpr std::size_t kHugePageBytes = 2 << 20;
constexpr DAT_COUNT kReadsAtOnce = 16;

}  // namespace

Adapter::Adapter(const std::string& name) {
  std::string writable = name;  // the standard's name type is a pointer to non-const characters
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  check(dat_ia_open(writable.data(), kAsyncQueueLength, &async_evd_, &ia), fmt::format("opening adapter '{}'", name));
  ia_ = Ia(ia);
  check(dat_ia_query(ia, nullptr, DAT_IA_FIELD_ALL, &attributes_, DAT_PROVIDER_FIELD_NONE, nullptr), "dat_ia_query");
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  check(dat_pz_create(ia, &pz), "dat_pz_create");
  pz_ = Pz(pz);
}

Evd Adapter::make_evd(DAT_COUNT length, int flags) const {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  check(dat_evd_create(ia(), length, DAT_HANDLE_NULL, static_cast<DAT_EVD_FLAGS>(flags), &evd), "dat_evd_create");
  return Evd(evd);
}

Srq Adapter::make_srq(DAT_COUNT buffers) const {
  DAT_SRQ_ATTR attributes{};
  attributes.max_recv_dtos = buffers;
  attributes.max_recv_iov = 1;
  attributes.low_watermark = DAT_SRQ_LW_DEFAULT;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  check(dat_srq_create(ia(), pz(), &attributes, &srq), "dat_srq_create");
  return Srq(srq);
}

Ep Adapter::make_ep(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_COUNT receives,
                    DAT_COUNT requests) const {
  const DAT_EP_ATTR attributes = ep_attributes(receives, requests);
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  check(dat_ep_create(ia(), pz(), recv, request, connect, &attributes, &ep), "dat_ep_create");
  return Ep(ep);
}

Ep Adapter::make_ep_with_srq(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq,
                             DAT_COUNT requests) const {
  const DAT_EP_ATTR attributes = ep_attributes(DAT_HW_DEFAULT, requests);
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  check(dat_ep_create_with_srq(ia(), pz(), recv, request, connect, srq, &attributes, &ep), "dat_ep_create_with_srq");
  return Ep(ep);
}

DAT_EP_ATTR Adapter::ep_attributes(DAT_COUNT receives, DAT_COUNT requests) const {
  DAT_EP_ATTR attributes{};
  attributes.service_type = DAT_SERVICE_TYPE_RC;
  attributes.max_message_size = attributes_.max_message_size;
  attributes.max_rdma_size = attributes_.max_rdma_size;
  attributes.qos = DAT_QOS_BEST_EFFORT;
  attributes.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attributes.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attributes.max_recv_dtos = receives;
  attributes.max_request_dtos = requests;
  attributes.max_recv_iov = 1;
  attributes.max_request_iov = 1;
  attributes.max_rdma_read_in = std::min(attributes_.max_rdma_read_per_ep_in, kReadsAtOnce);
  attributes.max_rdma_read_out = std::min(attributes_.max_rdma_read_per_ep_out, kReadsAtOnce);
  attributes.srq_soft_hw = DAT_HW_DEFAULT;
  return attributes;
}

namespace {

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Region::Region(const Adapter& adapter, std::size_t bytes, int remote_rights, Kind kind) : kind_(kind) {
  void* memory = nullptr;
  if (kind == Kind::shareable) {
    check(anydat_alloc_shareable(bytes, &memory), "anydat_alloc_shareable");
  } else {
    mapped_bytes_ = bytes < kHugePageBytes / 8 ? bytes : round_up(bytes, kHugePageBytes) + kHugePageBytes;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) fail_errno(fmt::format("reserving {} bytes of memory", bytes));
    memory = mapped_;
    if (mapped_bytes_ > bytes) {
      // A hint only: fewer address translations, and less work for a kernel that copies between processes. Refusal
      // changes nothing but speed.
      memory = reinterpret_cast<void*>(round_up(reinterpret_cast<std::uintptr_t>(mapped_), kHugePageBytes));
      madvise(memory, round_up(bytes, kHugePageBytes), MADV_HUGEPAGE);
    }
  }
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  std::memset(memory, 0, bytes);  // the first touch of a page must not be part of a measurement

  DAT_REGION_DESCRIPTION description{};
  description.for_va = memory;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  const int rights = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG | remote_rights;
  const DAT_RETURN status =
      dat_lmr_create(adapter.ia(), DAT_MEM_TYPE_VIRTUAL, description, bytes, adapter.pz(),
                     static_cast<DAT_MEM_PRIV_FLAGS>(rights), &lmr, &context_, &rmr_context_, nullptr, nullptr);
  if (status != DAT_SUCCESS) {
    release();
    fail(status, fmt::format("registering {} bytes of memory", bytes));
  }
  lmr_ = Lmr(lmr);
}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(kind_, other.kind_);
  std::swap(lmr_, other.lmr_);
  std::swap(context_, other.context_);
  std::swap(rmr_context_, other.rmr_context_);
  return *this;
}

Region::~Region() {
  lmr_.reset();
  release();
}

void Region::release() {
  if (data_ == nullptr) return;
  if (kind_ == Kind::shareable) {
    anydat_free_shareable(data_);
  } else {
    munmap(mapped_, mapped_bytes_);
  }
  data_ = nullptr;
}

}  // namespace tools
