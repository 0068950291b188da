// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/rmr.h"

#include <algorithm>
#include <new>
#include <utility>

#include "dapl/ep.h"
#include "dapl/ia.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/segments.h"

namespace anydat::dapl {

namespace {

constexpr std::uint32_t kRemote = nic::access::kRemoteRead | nic::access::kRemoteWrite | nic::access::kRemoteAtomic;

// RMR-BIND-9: a remote right is lent from the local one; that to atomic operations from itself (D2-ATOM-8).
std::uint32_t local_rights_for(std::uint32_t remote) {
  return ((remote & nic::access::kRemoteRead) != 0 ? nic::access::kLocalRead : 0) |
         ((remote & nic::access::kRemoteWrite) != 0 ? nic::access::kLocalWrite : 0) |
         (remote & nic::access::kRemoteAtomic);
}

}  // namespace

Rmr::Rmr(Ia& ia, Pz& pz, nic::WindowScope scope)
    : Object(ia, kType), pz_(pz), scope_(scope), window_(ia.nic().create_window(pz.zone(), scope, *this)) {
  pz_.use();
}

Error Rmr::create(const char* call, Pz& pz, nic::WindowScope scope, Handle* handle) {
  if (!handle) return fail(Argument::rmr_handle, "{}: rmr_handle is NULL", call);
  Ia& ia = pz.ia();
  if (scope == nic::WindowScope::queue_pair && !ia.description().endpoint_windows()) {
    return fail(Code::model_not_supported, Detail::none, "{}: {} has no windows of one endpoint", call, ia.name());
  }
  auto made = std::make_unique<Rmr>(ia, pz, scope);
  Rmr* rmr = made->window_ ? ia.adopt(std::move(made)) : nullptr;
  if (!rmr) {
    pz.release();
    return ia.out_of(call, "memory windows", Detail::memory_region);
  }
  *handle = rmr->handle();
  return kSuccess;
}

RmrParameters Rmr::query() const {
  return {ia().handle(), pz_.handle(), triplet_, rights_, context_, zero_based_, of_endpoint()};
}

Error Rmr::plan_bind(const Wanted& wanted, Plan& plan) const {
  const char* call = "dat_rmr_bind";
  if (!wanted.triplet) return fail(Argument::lmr_triplet, "{}: lmr_triplet is NULL", call);
  if ((wanted.rights & ~ia().description().privileges()) != 0) {
    return fail(Argument::mem_priv, "{}: privileges {:#x} have bits outside {:#x}", call, wanted.rights,
                ia().description().privileges());
  }
  const Segment part = *wanted.triplet;
  plan.remote = wanted.rights & kRemote;
  std::uint64_t where = part.address;
  if (part.length > 0) {
    plan.lmr = ia().find_lmr(part.key);
    if (!plan.lmr) {
      return fail(Argument::lmr_triplet, "{}: no live LMR has the context {:#x}", call, part.key);
    }
    // The table of regions may grant more than the LMR was registered with (Habits::sends_without_local_read).
    const bool lent = (local_rights_for(plan.remote) & ~plan.lmr->rights()) == 0;
    switch (lent ? locate(ia().nic().regions(), part, pz_.zone(), 0, where) : nic::RegionCheck::no_right) {
      case nic::RegionCheck::ok:
        break;
      case nic::RegionCheck::wrong_zone:
        return fail(Code::protection_violation, Detail::none,
                    "{}: the LMR with context {:#x} is not of the RMR's protection zone", call, part.key);
      case nic::RegionCheck::no_right:
        return fail(Code::privileges_violation, Detail::none,
                    "{}: remote privileges {:#x} need local ones that the LMR with context {:#x} does not have", call,
                    plan.remote, part.key);
      default:
        return fail(Argument::lmr_triplet, "{}: {} bytes at {:#x} reach outside the LMR with context {:#x}", call,
                    part.length, part.address, part.key);
    }
  }
  const bool zero_based = wanted.zero_based && plan.lmr;  // an unbind has no type (D2-RMR-5)
  if (zero_based && (plan.remote & nic::access::kRemoteAtomic) != 0 && where % kAtomicWordBytes != 0) {
    return fail(Argument::lmr_triplet,
                "{}: REMOTE_ATOMIC is asked for, but the zero-based window begins at {:#x}, no multiple of {}", call,
                where, kAtomicWordBytes);
  }
  plan.part = {part.key, 0, where, part.length};
  plan.shown = plan.remote | (zero_based ? nic::access::kZeroBased : 0);
  return kSuccess;
}

Error Rmr::bind(const Wanted& wanted, Ep& ep, std::uint64_t cookie, CompletionFlags flags, std::uint32_t* context) {
  nic::Adapter& nic = ia().nic();
  const Handle endpoint = ep.handle();
  const bool prepares = nic.prepares_binds();
  std::unique_ptr<nic::PreparedBind> prepared;
  if (prepares) {
    Plan sketch;
    nic::ZoneId zone = nic::kNoZone;
    {
      os::Guard guard(ia().engine());
      if (const Error error = plan_bind(wanted, sketch)) return error;
      zone = pz_.zone();
      ++preparing_;
    }
    // If it cannot be had, the post says so, once it has found nothing else.
    try {
      if (sketch.lmr) prepared = nic.prepare_bind(zone, sketch.part, sketch.shown);
    } catch (const std::bad_alloc&) {
    }
  }
  os::Guard guard(ia().engine());
  if (prepares) --preparing_;
  if (freed_ || lookup<Ep>(endpoint) != &ep) {
    return fail(Code::invalid_handle, freed_ ? Detail::handle_rmr : Detail::handle_ep,
                "dat_rmr_bind: the {} was freed meanwhile", freed_ ? "RMR" : "endpoint");
  }
  Plan plan;
  if (const Error error = plan_bind(wanted, plan)) return error;
  return post(wanted, plan, ep,
              {cookie, handle(), ++last_tag_, window_.get(), plan.part, plan.shown, {}, prepared.get()}, flags,
              context);
}

Error Rmr::post(const Wanted& wanted, const Plan& plan, Ep& ep, nic::BindRequest request, CompletionFlags flags,
                std::uint32_t* context) {
  const std::uint64_t tag = request.tag;
  pending_.push_back({tag, plan.lmr ? plan.part.key : 0});
  std::uint32_t key = 0;
  const Error error = ep.posts().post_bind(request, flags, pz_, key);
  if (error || key == 0) {
    on_bind(tag, false);  // refused, or flushed already (RMR-BIND-13)
    return error;
  }
  if (context) *context = plan.lmr ? key : 0;
  const bool pending = !pending_.empty() && pending_.back().tag == tag;
  if (!pending && bound_by_ != tag && (of_endpoint() || bound_by_ == 0)) {
    if (bound_by_ == 0) show_nothing();
    return kSuccess;  // it has ended already, or was flushed
  }
  shown_by_ = tag;
  triplet_ = plan.lmr ? *wanted.triplet : Segment{};
  rights_ = plan.lmr ? plan.remote : 0;
  context_ = plan.lmr ? key : 0;
  zero_based_ = (plan.shown & nic::access::kZeroBased) != 0;
  return kSuccess;
}

void Rmr::on_bind(std::uint64_t tag, bool bound) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& one) { return one.tag == tag; });
  const std::uint32_t context = found->lmr;
  pending_.erase(found);
  // What has come to nothing is not to look as if it stood where nothing stands any more (RMR-QUERY-2).
  if (!bound && bound_by_ == 0 && shown_by_ == tag) show_nothing();
  if (!bound || freed_) return;
  bound_by_ = context != 0 ? tag : 0;  // an unbind ends nowhere
  forget_lmr();
  lmr_ = context != 0 ? ia().find_lmr(context) : nullptr;  // alive, or it could not have been bound to
  if (lmr_) lmr_->bind();
}

void Rmr::on_unbound(std::uint64_t tag) {
  if (shown_by_ == tag) show_nothing();
  if (bound_by_ != tag) return;
  bound_by_ = 0;
  if (pending_.empty()) show_nothing();  // a bind that was flushed while this one stood
  forget_lmr();
}

void Rmr::forget_lmr() {
  if (lmr_) std::exchange(lmr_, nullptr)->unbind();
}

void Rmr::show_nothing() {
  triplet_ = {};
  rights_ = 0;
  context_ = 0;
  zero_based_ = false;
  shown_by_ = 0;
}

std::optional<Error> Rmr::free() {
  freed_ = true;
  if (!window_->close()) return std::nullopt;
  ia().retire(*this);
  return kSuccess;
}

void Rmr::shut_down() {
  freed_ = true;
  static_cast<void>(window_->close());
  forget_lmr();
  pz_.release();
}

}  // namespace anydat::dapl
