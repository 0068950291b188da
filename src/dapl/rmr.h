// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;
class Lmr;
class Pz;

// A remote memory region: a window onto a part of an LMR. All with the engine held.
class Rmr final : public Object, public nic::WindowEvents {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_RMR;

  Rmr(Ia& ia, Pz& pz);

  static DAT_RETURN create(Pz& pz, DAT_RMR_HANDLE* handle);
  DAT_RETURN query(DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param);
  DAT_RETURN bind(const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS rights, Ep& ep, DAT_RMR_COOKIE cookie,
                  DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context);
  std::optional<DAT_RETURN> free();  // as Lmr::free()
  void shut_down();
  bool in_use() const override { return !pending_.empty(); }  // binds of it are still to be reported (RMR-FREE-3)

  // nic::WindowEvents
  void on_bind(std::uint64_t tag, bool bound) override;

 private:
  struct Pending {
    std::uint64_t tag;
    DAT_LMR_CONTEXT lmr;  // 0: an unbind
    std::uint32_t key;    // what peers are to know it by; 0 until post_bind() has returned
  };

  Pz& pz_;
  std::unique_ptr<nic::Window> window_;
  bool freed_ = false;
  Lmr* lmr_ = nullptr;          // bound to
  std::uint32_t bound_ = 0;     // what peers know it by
  std::uint64_t bound_by_ = 0;  // the tag of the bind that has made it so
  std::vector<Pending> pending_;
  std::uint64_t last_tag_ = 0;
  // Of the last bind that was posted (RMR-QUERY-3).
  DAT_LMR_TRIPLET triplet_{};
  DAT_MEM_PRIV_FLAGS rights_ = DAT_MEM_PRIV_NONE_FLAG;
  DAT_RMR_CONTEXT context_ = 0;
};

}  // namespace anydat::dapl
