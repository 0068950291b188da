// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;
class Lmr;
class Pz;

// A remote memory region: a window onto a part of an LMR. All with the engine held, but for bind().
//
// One of an endpoint is what 1.2 has not: it opens its part to the peer of that endpoint alone by which it is bound,
// and its binding ends with the connection, or when the peer gives it back (D2-RMR-2 to D2-RMR-4, D2-RMR-9).
class Rmr final : public Object, public nic::WindowEvents {
 public:
  static constexpr HandleType kType = HandleType::rmr;

  Rmr(Ia& ia, Pz& pz, nic::WindowScope scope);

  static Error create(const char* call, Pz& pz, nic::WindowScope scope, Handle* handle);
  RmrParameters query() const;
  struct Wanted {
    const Segment* triplet;
    Privileges rights;
    bool zero_based;  // peers name its bytes by their offset (D2-RMR-7)
  };
  // Without the engine, since it may take long.
  Error bind(const Wanted& wanted, Ep& ep, std::uint64_t cookie, CompletionFlags flags, std::uint32_t* context);
  std::optional<Error> free();  // as Lmr::free()
  // Before the instance that it is of goes. False: ask again, as for an endpoint.
  bool cut() { return window_->close(); }
  void shut_down();
  // Binds of it are still to be reported (RMR-FREE-3), or a thread is in the middle of one.
  bool in_use() const override { return !pending_.empty() || preparing_ > 0; }

  // nic::WindowEvents
  void on_bind(std::uint64_t tag, bool bound) override;
  void on_unbound(std::uint64_t tag) override;

 private:
  struct Pending {
    std::uint64_t tag;
    std::uint32_t lmr;  // 0: an unbind
  };

  // A bind that may be posted.
  struct Plan {
    Segment part{};  // where it lies, by its address
    Lmr* lmr = nullptr;
    std::uint32_t remote = 0;
    std::uint32_t shown = 0;
  };
  Error plan_bind(const Wanted& wanted, Plan& plan) const;
  Error post(const Wanted& wanted, const Plan& plan, Ep& ep, nic::BindRequest request, CompletionFlags flags,
             std::uint32_t* context);
  void forget_lmr();
  void show_nothing();
  bool of_endpoint() const { return scope_ == nic::WindowScope::queue_pair; }

  Pz& pz_;
  const nic::WindowScope scope_;
  std::unique_ptr<nic::Window> window_;
  bool freed_ = false;
  Lmr* lmr_ = nullptr;          // bound to
  std::uint64_t bound_by_ = 0;  // the tag of the bind that has made it so; 0: an unbind has, or it has ended
  std::vector<Pending> pending_;
  unsigned preparing_ = 0;  // threads in bind(), without the engine
  std::uint64_t last_tag_ = 0;
  // Of the last bind that was posted (RMR-QUERY-3), unless that has ended.
  std::uint64_t shown_by_ = 0;
  Segment triplet_{};
  Privileges rights_ = 0;
  std::uint32_t context_ = 0;
  bool zero_based_ = false;
};

}  // namespace anydat::dapl
