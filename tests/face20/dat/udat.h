// SPDX-License-Identifier: BSD-3-Clause
// One source, two faces: the suites are written to the headers of uDAPL 1.2. Compiled for 2.0 they find this folder
// first, see the types and calls of 2.0, and call by their parameters of 1.2 the three that 2.0 has given more.
#pragma once

#include <dat2/udat.h>
#include <pthread.h>

#include <map>
#include <mutex>

// D2-HDR-9.
#define target_address virtual_address

namespace anydat::test {

// The region of each context, which a bind of 2.0 wants beside it. A context of none goes beside the latest region.
class LmrsByContext {
 public:
  static LmrsByContext& instance() {
    static LmrsByContext lmrs;
    return lmrs;
  }
  void add(DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr) {
    const std::lock_guard guard(lock_);
    lmrs_[context] = lmr;
    latest_ = lmr;
  }
  DAT_LMR_HANDLE find(DAT_LMR_CONTEXT context) {
    const std::lock_guard guard(lock_);
    const auto found = lmrs_.find(context);
    return found != lmrs_.end() ? found->second : latest_;
  }

 private:
  // The child of a fork goes on with it.
  LmrsByContext() {
    pthread_atfork([] { instance().lock_.lock(); }, [] { instance().lock_.unlock(); },
                   [] { instance().lock_.unlock(); });
  }

  std::mutex lock_;
  std::map<DAT_LMR_CONTEXT, DAT_LMR_HANDLE> lmrs_;
  DAT_LMR_HANDLE latest_ = DAT_HANDLE_NULL;
};

}  // namespace anydat::test

inline DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION description,
                                 DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights, DAT_LMR_HANDLE* lmr,
                                 DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* size,
                                 DAT_VADDR* address) {
  DAT_LMR_CONTEXT context = 0;
  const DAT_RETURN rc = dat_lmr_create(ia, type, description, length, pz, rights, DAT_VA_TYPE_VA, lmr,
                                       lmr_context ? lmr_context : &context, rmr_context, size, address);
  if (rc == DAT_SUCCESS) anydat::test::LmrsByContext::instance().add(lmr_context ? *lmr_context : context, *lmr);
  return rc;
}

inline DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS rights,
                               DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                               DAT_RMR_CONTEXT* context) {
  const DAT_LMR_HANDLE lmr =
      triplet ? anydat::test::LmrsByContext::instance().find(triplet->lmr_context) : DAT_HANDLE_NULL;
  return dat_rmr_bind(rmr, lmr, triplet, rights, DAT_VA_TYPE_VA, ep, cookie, flags, context);
}

inline DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr) {
  return dat_cr_reject(cr, 0, nullptr);
}
