// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/rmr.h"

#include <algorithm>
#include <utility>

#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/ia.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/ranges.h"

namespace anydat::dapl {

namespace {

constexpr std::uint32_t kRemote = nic::access::kRemoteRead | nic::access::kRemoteWrite;

// RMR-BIND-9: a remote right is lent from the local one.
std::uint32_t local_rights_for(std::uint32_t remote) {
  return ((remote & nic::access::kRemoteRead) != 0 ? nic::access::kLocalRead : 0) |
         ((remote & nic::access::kRemoteWrite) != 0 ? nic::access::kLocalWrite : 0);
}

}  // namespace

Rmr::Rmr(Ia& ia, Pz& pz) : Object(ia, kType), pz_(pz), window_(ia.nic().create_window(pz.zone(), *this)) {
  pz_.use();
}

DAT_RETURN Rmr::create(Pz& pz, DAT_RMR_HANDLE* handle) {
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_rmr_create: rmr_handle is NULL");
  Ia& ia = pz.ia();
  auto made = std::make_unique<Rmr>(ia, pz);
  Rmr* rmr = made->window_ ? ia.adopt(std::move(made)) : nullptr;
  if (!rmr) {
    pz.release();
    return ia.out_of("dat_rmr_create", "memory windows", DAT_RESOURCE_MEMORY_REGION);
  }
  *handle = rmr->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Rmr::query(DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_rmr_query", mask, DAT_RMR_FIELD_ALL, param)) return rc;
  param->ia_handle = ia().handle();
  param->pz_handle = pz_.handle();
  param->lmr_triplet = triplet_;
  param->mem_priv = rights_;
  param->rmr_context = context_;
  return DAT_SUCCESS;
}

DAT_RETURN Rmr::bind(const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS rights, Ep& ep, DAT_RMR_COOKIE cookie,
                     DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) {
  const char* call = "dat_rmr_bind";
  if (!triplet) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: lmr_triplet is NULL", call);
  if ((rights & ~DAT_MEM_PRIV_ALL_FLAG) != 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: privileges {:#x} have bits outside {:#x}", call,
                static_cast<unsigned>(rights), static_cast<unsigned>(DAT_MEM_PRIV_ALL_FLAG));
  }
  const DAT_LMR_TRIPLET part = *triplet;
  const std::uint32_t remote = static_cast<std::uint32_t>(rights) & kRemote;
  Lmr* lmr = nullptr;
  if (part.segment_length > 0) {
    lmr = ia().find_lmr(part.lmr_context);
    if (!lmr) {
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: no live LMR has the context {:#x}", call,
                  part.lmr_context);
    }
    // The table of regions may grant more than the LMR was registered with (Habits::sends_without_local_read).
    const bool lent = (local_rights_for(remote) & ~lmr->rights()) == 0;
    switch (lent
                ? ia().nic().regions().check(part.lmr_context, part.virtual_address, part.segment_length, pz_.zone(), 0)
                : nic::RegionCheck::no_right) {
      case nic::RegionCheck::ok:
        break;
      case nic::RegionCheck::wrong_zone:
        return fail(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE,
                    "{}: the LMR with context {:#x} is not of the RMR's protection zone", call, part.lmr_context);
      case nic::RegionCheck::no_right:
        return fail(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE,
                    "{}: remote privileges {:#x} need local ones that the LMR with context {:#x} does not have", call,
                    remote, part.lmr_context);
      default:
        return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                    "{}: {} bytes at {:#x} reach outside the LMR with context {:#x}", call,
                    static_cast<std::uint64_t>(part.segment_length), static_cast<std::uint64_t>(part.virtual_address),
                    part.lmr_context);
    }
  }
  const std::uint64_t tag = ++last_tag_;
  pending_.push_back({tag, lmr ? part.lmr_context : 0, 0});
  std::uint32_t key = 0;
  const nic::Segment segment{part.lmr_context, 0, part.virtual_address, part.segment_length};
  const DAT_RETURN rc =
      ep.post_bind({cookie.as_64, handle(), tag, window_.get(), segment, remote, {}}, flags, pz_, key);
  if (rc != DAT_SUCCESS || key == 0) {
    on_bind(tag, false);  // refused, or flushed already (RMR-BIND-13)
    return rc;
  }
  if (bound_by_ == tag) {
    bound_ = key;
  } else if (!pending_.empty() && pending_.back().tag == tag) {
    pending_.back().key = key;
  }
  triplet_ = lmr ? part : DAT_LMR_TRIPLET{};
  rights_ = lmr ? static_cast<DAT_MEM_PRIV_FLAGS>(remote) : DAT_MEM_PRIV_NONE_FLAG;
  context_ = lmr ? key : 0;
  if (context) *context = context_;
  return DAT_SUCCESS;
}

void Rmr::on_bind(std::uint64_t tag, bool bound) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& one) { return one.tag == tag; });
  const DAT_LMR_CONTEXT context = found->lmr;
  const std::uint32_t key = found->key;
  pending_.erase(found);
  if (!bound || freed_) return;
  bound_ = key;
  bound_by_ = tag;
  if (lmr_) lmr_->unbind();
  lmr_ = context != 0 ? ia().find_lmr(context) : nullptr;  // alive, or it could not have been bound to
  if (lmr_) lmr_->bind();
}

std::optional<DAT_RETURN> Rmr::free() {
  freed_ = true;
  window_->close();
  if (bound_ != 0 && !ia().nic().quiesce(bound_)) return std::nullopt;
  ia().retire(*this);
  return DAT_SUCCESS;
}

void Rmr::shut_down() {
  freed_ = true;
  window_->close();
  if (lmr_) std::exchange(lmr_, nullptr)->unbind();
  pz_.release();
}

}  // namespace anydat::dapl
