// SPDX-License-Identifier: BSD-3-Clause
// Objects and handles: sections 1.1 and 1.4 of part 1.
#include <dat/udat.h>
// After udat.h, as a Provider includes it (HDR-1).
#include <dat/dat_registry.h>
#include <fmt/format.h>

#include <cstring>
#include <set>
#include <string>

#include "evd_fixture.h"
#include "handles_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

class HandleObjects : public testing::TestWithParam<Wire> {
 protected:
  static std::vector<DAT_HANDLE> every_handle(const Household& home) {
    std::vector<DAT_HANDLE> all{home.async_evd, home.connected, home.accepted,  home.reserved,
                                home.other_psp, home.spare_pz,  home.spare_evd, home.spare_cno};
    for (int i = 0; i < kHandleTypes; ++i) {
      const DAT_HANDLE handle = home.of_type(static_cast<DAT_HANDLE_TYPE>(i));
      if (handle != DAT_HANDLE_NULL) all.push_back(handle);
    }
    return all;
  }
  // What the queries of an object report as its IA.
  static DAT_IA_HANDLE ia_of(const Household& home, DAT_HANDLE_TYPE type) {
    DAT_EP_PARAM ep{};
    DAT_EVD_PARAM evd{};
    DAT_LMR_PARAM lmr{};
    DAT_PSP_PARAM psp{};
    DAT_PZ_PARAM pz{};
    DAT_RMR_PARAM rmr{};
    DAT_RSP_PARAM rsp{};
    DAT_CNO_PARAM cno{};
    DAT_SRQ_PARAM srq{};
    switch (type) {
      case DAT_HANDLE_TYPE_EP:
        require(dat_ep_query(home.idle, DAT_EP_FIELD_IA_HANDLE, &ep), "dat_ep_query");
        return ep.ia_handle;
      case DAT_HANDLE_TYPE_EVD:
        require(dat_evd_query(home.evd, DAT_EVD_FIELD_IA_HANDLE, &evd), "dat_evd_query");
        return evd.ia_handle;
      case DAT_HANDLE_TYPE_LMR:
        require(dat_lmr_query(home.lmr, DAT_LMR_FIELD_IA_HANDLE, &lmr), "dat_lmr_query");
        return lmr.ia_handle;
      case DAT_HANDLE_TYPE_PSP:
        require(dat_psp_query(home.psp, DAT_PSP_FIELD_IA_HANDLE, &psp), "dat_psp_query");
        return psp.ia_handle;
      case DAT_HANDLE_TYPE_PZ:
        require(dat_pz_query(home.pz, DAT_PZ_FIELD_IA_HANDLE, &pz), "dat_pz_query");
        return pz.ia_handle;
      case DAT_HANDLE_TYPE_RMR:
        require(dat_rmr_query(home.rmr, DAT_RMR_FIELD_IA_HANDLE, &rmr), "dat_rmr_query");
        return rmr.ia_handle;
      case DAT_HANDLE_TYPE_RSP:
        require(dat_rsp_query(home.rsp, DAT_RSP_FIELD_IA_HANDLE, &rsp), "dat_rsp_query");
        return rsp.ia_handle;
      case DAT_HANDLE_TYPE_CNO:
        require(dat_cno_query(home.cno, DAT_CNO_FIELD_IA_HANDLE, &cno), "dat_cno_query");
        return cno.ia_handle;
      case DAT_HANDLE_TYPE_SRQ:
        require(dat_srq_query(home.srq, DAT_SRQ_FIELD_IA_HANDLE, &srq), "dat_srq_query");
        return srq.ia_handle;
      default:  // a CR tells none, and an IA is one
        return home.ia;
    }
  }
};

// OBJ-1, HND-8: every object belongs to the instance by whose handle it was made, and reports exactly that handle.
TEST_P(HandleObjects, QueriesReportTheInstanceTheyBelongTo) {
  const Household first(GetParam());
  const Household second(GetParam());
  for (const Household* home : {&first, &second}) {
    for (int i = 0; i < kHandleTypes; ++i) {
      const auto type = static_cast<DAT_HANDLE_TYPE>(i);
      if (home->of_type(type) == DAT_HANDLE_NULL) continue;
      const DAT_IA_HANDLE reported = ia_of(*home, type);
      EXPECT_EQ(reported, home->ia) << name_of_type(type);
      EXPECT_THAT(dat_ia_query(reported, nullptr, 0, nullptr, 0, nullptr), Succeeds());
    }
  }
}

// OBJ-1, IA-CLOSE-8, IA-CLOSE-15: closing one instance takes its objects and no others.
TEST_P(HandleObjects, ObjectsLiveAndDieWithTheirInstance) {
  Household first(GetParam());
  const Household second(GetParam());
  ASSERT_THAT(dat_ia_close(first.ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  DAT_HANDLE_TYPE type{};
  for (const DAT_HANDLE handle : every_handle(first)) {
    EXPECT_THAT(dat_get_handle_type(handle, &type), HasType(DAT_INVALID_HANDLE));
  }
  for (const DAT_HANDLE handle : every_handle(second)) {
    EXPECT_THAT(dat_get_handle_type(handle, &type), Succeeds());
  }
}

// OBJ-4: an EVD points at one CNO at most, a CNO may be pointed at by any number.
TEST_P(HandleObjects, EvdHasOneCnoAndACnoManyEvds) {
  const Ia ia(GetParam());
  const Cno first(ia);
  const Cno second(ia);
  std::vector<Evd> evds;
  for (int i = 0; i < 20; ++i) {
    evds.emplace_back(ia, DAT_EVD_SOFTWARE_FLAG, 4, first.get());
  }
  for (const Evd& evd : evds) {
    post(evd.get());
    EXPECT_EQ(wait_cno(first.get(), 0).evd, evd.get());
  }
  ASSERT_THAT(dat_evd_modify_cno(evds[0].get(), second.get()), Succeeds());
  take(evds[0].get());
  post(evds[0].get());
  EXPECT_FALSE(take_trigger(first.get()));
  EXPECT_TRUE(take_trigger(second.get()));
}

// OBJ-6: EVD calls take the async EVD as they take any other (its own tests are with IaOpen, EvdWait, EvdResize).
TEST_P(HandleObjects, AsyncEvdTakesEveryEvdCall) {
  const Household home(GetParam());
  DAT_EVENT event{};
  EXPECT_EQ(query_evd(home.async_evd).ia_handle, home.ia);
  EXPECT_THAT(dat_evd_modify_cno(home.async_evd, home.cno), Succeeds());
  EXPECT_THAT(dat_evd_disable(home.async_evd), Succeeds());
  EXPECT_THAT(dat_evd_enable(home.async_evd), Succeeds());
  EXPECT_THAT(dat_evd_set_unwaitable(home.async_evd), Succeeds());
  EXPECT_THAT(dat_evd_clear_unwaitable(home.async_evd), Succeeds());
  EXPECT_THAT(dat_evd_resize(home.async_evd, 32), Succeeds());
  EXPECT_THAT(dat_evd_dequeue(home.async_evd, &event), HasType(DAT_QUEUE_EMPTY));
  EXPECT_THAT(wait_evd(home.async_evd, 0).rc, HasType(DAT_TIMEOUT_EXPIRED));
}

// HND-5
TEST_P(HandleObjects, HandlesAreUniqueAmongAllLiveObjects) {
  const Household first(GetParam());
  const Household second(GetParam());
  std::vector<DAT_HANDLE> all = every_handle(first);
  const std::vector<DAT_HANDLE> others = every_handle(second);
  all.insert(all.end(), others.begin(), others.end());
  EXPECT_EQ(std::set<DAT_HANDLE>(all.begin(), all.end()).size(), all.size());
}

// HND-5, HND-2: a freed value may come again, but is refused until it does.
TEST_P(HandleObjects, StaleHandleIsRefusedUntilItsValueIsIssuedAgain) {
  const Ia ia(GetParam());
  DAT_PZ_HANDLE stale = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_pz_create(ia.get(), &stale), Succeeds());
  ASSERT_THAT(dat_pz_free(stale), Succeeds());
  DAT_PZ_PARAM param{};
  for (int i = 0; i < 40'000; ++i) {
    DAT_PZ_HANDLE other = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_pz_create(ia.get(), &other), Succeeds());
    const bool issued_again = other == stale;
    ASSERT_EQ(dat_pz_query(stale, DAT_PZ_FIELD_ALL, &param) == DAT_SUCCESS, issued_again);
    ASSERT_THAT(dat_pz_free(other), Succeeds());
    ASSERT_THAT(dat_pz_query(stale, DAT_PZ_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  }
}

// Tells the handle of an EVD, and waits.
void play_handle_teller(RoleContext& context) {
  const Ia ia(context.wire);
  const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  context.parent.say(std::to_string(reinterpret_cast<std::uintptr_t>(evd.get())));
  context.parent.hear();
}
const Role kHandleTeller("handle_teller", play_handle_teller);

// HND-6: a value from another process means nothing here, unless it happens to be one of ours.
TEST_P(HandleObjects, HandleOfAnotherProcessIsRefused) {
  const Ia ia(GetParam());
  const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  PeerProcess other("handle_teller", GetParam());
  const auto told = reinterpret_cast<DAT_HANDLE>(std::stoull(other.channel().hear()));
  const bool ours = told == evd.get() || told == ia.get() || told == ia.async_evd();
  EXPECT_EQ(try_post(told) == DAT_SUCCESS, ours && told == evd.get());
  if (!ours) {
    EXPECT_THAT(try_post(told), HasType(DAT_INVALID_HANDLE));
  }
  other.channel().say("done");
  EXPECT_EQ(other.wait_exit(), 0);
}

// HND-6: any thread of the process may use it, however it came by it.
TEST_P(HandleObjects, AnyThreadMayUseAHandle) {
  const Ia ia(GetParam());
  const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  BlockedWait waiter(evd.get());
  std::thread([handle = evd.get()] { post(handle, 3); }).join();
  EXPECT_EQ(value_of(waiter.result().event), 3u);
}

// HND-9: the word is a table whose calls work on the object, for each type; and it can be read after the object is gone
// (ruling A6).
TEST_P(HandleObjects, FirstWordLeadsToTheProvidersTable) {
  Household home(GetParam());
  const std::vector<DAT_HANDLE> all = every_handle(home);
  for (const DAT_HANDLE handle : all) {
    const DAT_PROVIDER* const provider = DAT_HANDLE_TO_PROVIDER(handle);
    ASSERT_NE(provider, nullptr);
    EXPECT_EQ(provider->device_name, GetParam().ia_name);
    DAT_HANDLE_TYPE by_table{};
    DAT_HANDLE_TYPE by_call{};
    EXPECT_THAT(provider->get_handle_type_func(handle, &by_table), Succeeds());
    EXPECT_THAT(dat_get_handle_type(handle, &by_call), Succeeds());
    EXPECT_EQ(by_table, by_call);
  }
  home.free_all();
  for (const DAT_HANDLE handle : all) {
    const DAT_PROVIDER* const provider = DAT_HANDLE_TO_PROVIDER(handle);
    ASSERT_NE(provider, nullptr);
    DAT_HANDLE_TYPE type{};
    EXPECT_THAT(provider->get_handle_type_func(handle, &type), HasType(DAT_INVALID_HANDLE)) << "REG-TBL-3";
  }
}

ANYDAT_OVER_ALL_WIRES(HandleObjects);

}  // namespace
}  // namespace anydat::test
