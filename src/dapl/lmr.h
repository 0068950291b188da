// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>

#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Pz;

// A local memory region. Its LMR context is the key of the NIC's region table, which posts check without asking us; its
// RMR context is what peers name the memory by.
class Lmr final : public Object {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_LMR;

  struct Request {
    DAT_MEM_TYPE type;
    DAT_REGION_DESCRIPTION description;
    DAT_VLEN length;
    DAT_MEM_PRIV_FLAGS rights;
  };
  struct Results {
    DAT_LMR_HANDLE* handle;
    DAT_LMR_CONTEXT* lmr_context;
    DAT_RMR_CONTEXT* rmr_context;
    DAT_VLEN* registered_size;
    DAT_VADDR* registered_address;
  };

  Lmr(Ia& ia, Pz& pz, const Request& request, DAT_VADDR address, const nic::RegionKeys& keys);

  static DAT_RETURN create(Ia& ia, Pz& pz, const Request& request, const Results& results);
  // Both calls dat_lmr_sync_rdma_read and _write: memory is coherent, so they check their arguments and are done.
  static DAT_RETURN sync(Ia& ia, const char* call, const DAT_LMR_TRIPLET* segments, DAT_VLEN count);
  DAT_RETURN query(DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param);
  // With the engine held. Nobody touches the memory through the region afterwards (LMR-FREE-8). Nothing: a peer is in
  // the middle of using it; ask again, with the engine released in between.
  std::optional<DAT_RETURN> free();
  std::uint32_t rights() const { return static_cast<std::uint32_t>(request_.rights); }
  // Engine held, as for the next two: an RMR is bound to it.
  void bind() { ++bound_; }
  void unbind() { --bound_; }
  void shut_down();

 private:
  static DAT_RETURN find_memory(Ia& ia, Request& request, DAT_VADDR& address);
  static DAT_RETURN check_range(const Ia& ia, DAT_VADDR address, DAT_VLEN length);
  DAT_RMR_CONTEXT rmr_context() const;

  Pz& pz_;
  Request request_;
  std::array<char, DAT_LMR_COOKIE_SIZE> shared_memory_id_{};  // of type SHARED_VIRTUAL
  const DAT_VADDR address_;
  const nic::RegionKeys keys_;
  std::uint32_t bound_ = 0;  // RMRs bound to it; with the engine
};

}  // namespace anydat::dapl
