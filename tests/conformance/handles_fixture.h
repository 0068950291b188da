// SPDX-License-Identifier: BSD-3-Clause
// One live object of every type, twice: the tests of handles and of the whole API have something of each to pass.
#pragma once

#include <dat/udat.h>

#include <array>
#include <cstddef>
#include <vector>

#include "support/wire.h"

namespace anydat::test {

inline constexpr int kHandleTypes = DAT_HANDLE_TYPE_SRQ + (DAT_VERSION_MAJOR == 1 ? 1 : 2);
const char* name_of_type(DAT_HANDLE_TYPE type);

// An open adapter with one object of every type, and some more where a call wants one in a certain state. It is closed
// abruptly, so tests may do with the objects what they like.
class Household {
 public:
  explicit Household(const Wire& wire);
  ~Household();
  Household(const Household&) = delete;
  Household& operator=(const Household&) = delete;

  // Frees everything one by one, the adapter last; all handles are then stale.
  void free_all();

  DAT_HANDLE of_type(DAT_HANDLE_TYPE type) const;
  DAT_LMR_TRIPLET segment() const;         // in lmr
  DAT_RMR_TRIPLET remote_segment() const;  // lmr, as a peer names it

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;  // of every flag, with the CNO, and used by everything below
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;  // null if the provider has no RMRs
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_EP_HANDLE idle = DAT_HANDLE_NULL;       // an endpoint that is unconnected
  DAT_EP_HANDLE connected = DAT_HANDLE_NULL;  // one that is connected, as the active side of a pair
  DAT_EP_HANDLE accepted = DAT_HANDLE_NULL;   // one that is connected, as the passive side
  DAT_EP_HANDLE reserved = DAT_HANDLE_NULL;   // the one of rsp
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE other_psp = DAT_HANDLE_NULL;
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  DAT_HANDLE csp = DAT_HANDLE_NULL;    // null where the version has none
  DAT_CR_HANDLE cr = DAT_HANDLE_NULL;  // a request that arrived at psp
  // Used by nothing, so that they can be freed.
  DAT_PZ_HANDLE spare_pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE spare_evd = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE spare_cno = DAT_HANDLE_NULL;

  DAT_CONN_QUAL psp_qualifier = 0;
  DAT_CONN_QUAL other_qualifier = 0;
  DAT_CONN_QUAL unused_qualifier = 0;  // no service point has it

 private:
  void create(const Wire& wire);
  DAT_EP_HANDLE make_ep() const;
  DAT_HANDLE make_csp() const;
  DAT_PSP_HANDLE make_psp(DAT_CONN_QUAL* qualifier) const;
  // Has an endpoint of its own ask at psp, and takes the request.
  void ask_itself();
  void connect_to_itself();

  DAT_EP_HANDLE asking_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context_ = 0;
  DAT_RMR_CONTEXT rmr_context_ = 0;
  alignas(64) std::array<std::byte, 256> memory_{};
};

// Values that are no handle of anything, and look more or less like one. `live` is a live handle to resemble.
std::vector<DAT_HANDLE> impostors(DAT_HANDLE live);

}  // namespace anydat::test
