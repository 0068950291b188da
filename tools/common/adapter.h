// SPDX-License-Identifier: BSD-3-Clause
// An open interface adapter with one protection zone: what every tool starts from.
#ifndef ANYDAT_TOOLS_COMMON_ADAPTER_H
#define ANYDAT_TOOLS_COMMON_ADAPTER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/handle.h"

namespace tools {

inline constexpr char kDefaultIa[] = "soft";

class Adapter {
 public:
  // Throws Error when the IA cannot be opened.
  explicit Adapter(const std::string& name);

  DAT_IA_HANDLE ia() const { return ia_.get(); }
  DAT_PZ_HANDLE pz() const { return pz_.get(); }
  DAT_EVD_HANDLE async_evd() const { return async_evd_; }
  const DAT_IA_ATTR& attributes() const { return attributes_; }

  Evd make_evd(DAT_COUNT length, int flags) const;
  Srq make_srq(DAT_COUNT buffers) const;
  // An endpoint with its own receive queue of `receives` buffers.
  Ep make_ep(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_COUNT receives,
             DAT_COUNT requests) const;
  // An endpoint that takes its receive buffers from `srq`, without watermarks of its own.
  Ep make_ep_with_srq(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq,
                      DAT_COUNT requests) const;

 private:
  DAT_EP_ATTR ep_attributes(DAT_COUNT receives, DAT_COUNT requests) const;

  DAT_EVD_HANDLE async_evd_ = DAT_HANDLE_NULL;  // lives and dies with ia_
  Ia ia_;
  Pz pz_;
  DAT_IA_ATTR attributes_{};
};

// Zeroed, touched and registered memory. Messages are cut out of it with at(). `remote_rights` are what peers may do to
// it: DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, both, or 0.
class Region {
 public:
  Region() = default;
  enum class Kind : std::uint8_t { heap, shareable };  // shareable: that other processes can map (anydat.h)
  Region(const Adapter& adapter, std::size_t bytes, int remote_rights = 0, Kind kind = Kind::heap);
  Region(Region&& other) noexcept { *this = std::move(other); }
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  DAT_RMR_CONTEXT rmr_context() const { return rmr_context_; }
  DAT_LMR_TRIPLET at(std::size_t offset, std::size_t length) const {
    DAT_LMR_TRIPLET triplet{};
    triplet.lmr_context = context_;
    triplet.virtual_address = reinterpret_cast<std::uintptr_t>(data_ + offset);
    triplet.segment_length = length;
    return triplet;
  }

 private:
  void release();

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Kind kind_ = Kind::heap;
  void* mapped_ = nullptr;  // of Kind::heap: all that was mapped for it
  std::size_t mapped_bytes_ = 0;
  Lmr lmr_;
  DAT_LMR_CONTEXT context_ = 0;
  DAT_RMR_CONTEXT rmr_context_ = 0;
};

}  // namespace tools

#endif
