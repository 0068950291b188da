// SPDX-License-Identifier: BSD-3-Clause
// Every call of the API with handles that are none: chapter 1.4 of part 1 and GEN-2, GEN-12 of part 2.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "api_other_version.h"
#include "api_table.h"
#include "evd_fixture.h"
#include "support/versions.h"

#if DAT_VERSION_MAJOR == 2
#include <dat2/dat_ib_extensions.h>
#endif

namespace anydat::test {
namespace {

// The calls that take handles of several types.
bool takes(const ApiCall& call, DAT_HANDLE_TYPE type) {
  const std::string function = call.function();
  if (function == "anydat_get_counters") {
    return type == DAT_HANDLE_TYPE_IA || type == DAT_HANDLE_TYPE_EP || type == DAT_HANDLE_TYPE_EVD ||
           type == DAT_HANDLE_TYPE_SRQ;
  }
  if (call.name.starts_with("dat_extension_op query") || call.name.starts_with("dat_extension_op print")) {
    return type == DAT_HANDLE_TYPE_IA || type == DAT_HANDLE_TYPE_EP || type == DAT_HANDLE_TYPE_EVD;
  }
  return function == "dat_set_consumer_context" || function == "dat_get_consumer_context" ||
         function == "dat_get_handle_type";
}

// What a function answers to arguments that are all zero.
template <typename... Arguments>
DAT_RETURN answer_to_nothing(DAT_RETURN (*function)(Arguments...)) {
  return function(Arguments{}...);
}

class ApiTable : public testing::TestWithParam<Wire> {
 protected:
  // Whatever the call, a refusal is an error and no warning.
  static void expect_invalid_handle(const ApiCall& call, const HandleArgument& argument, DAT_RETURN rc,
                                    const char* what, DAT_HANDLE handle) {
    const bool good = is_type(rc, DAT_INVALID_HANDLE) && DAT_IS_WARNING(rc) == 0 &&
                      (argument.subtype == DAT_NO_SUBTYPE || DAT_GET_SUBTYPE(rc) == argument.subtype);
    if (!good) {
      ADD_FAILURE() << call.name << " with " << what << ' ' << handle << " for its " << name_of_type(argument.type)
                    << ": " << describe(rc);
    }
  }
  // Each argument in turn is replaced by each of the values; all others are good.
  static void expect_refused(Household& home, const std::function<Handles(const ApiCall&, std::size_t)>& values,
                             const char* what) {
    for (const ApiCall& call : api_calls()) {
      for (std::size_t i = 0; i < call.handles.size(); ++i) {
        for (const DAT_HANDLE value : values(call, i)) {
          Handles handles = call.good_handles(home);
          handles[i] = value;
          expect_invalid_handle(call, call.handles[i], call.call(home, handles), what, value);
        }
      }
    }
  }
  // All that can be asked about all objects, as bytes.
  static std::vector<std::vector<std::byte>> everything_about(const Household& home) {
    std::vector<std::vector<std::byte>> all;
    const auto ask = [&]<typename Param, typename Mask>(DAT_RETURN (*query)(DAT_HANDLE, Mask, Param*),
                                                        DAT_HANDLE handle, Mask mask) {
      std::vector<std::byte> bytes(sizeof(Param));
      Param param;
      std::memset(static_cast<void*>(&param), 0, sizeof param);
      EXPECT_THAT(query(handle, mask, &param), Succeeds());
      std::memcpy(bytes.data(), static_cast<void*>(&param), sizeof param);
      all.push_back(std::move(bytes));
    };
    for (const DAT_EVD_HANDLE evd : {home.evd, home.spare_evd, home.async_evd}) {
      ask(&dat_evd_query, evd, DAT_EVD_FIELD_ALL);
    }
    for (const DAT_CNO_HANDLE cno : {home.cno, home.spare_cno}) {
      ask(&dat_cno_query, cno, DAT_CNO_FIELD_ALL);
    }
    for (const DAT_EP_HANDLE ep : {home.idle, home.connected, home.accepted, home.reserved}) {
      ask.operator()<DAT_EP_PARAM, DAT_EP_PARAM_MASK>(&dat_ep_query, ep, DAT_EP_FIELD_ALL);
    }
    ask(&dat_pz_query, home.pz, DAT_PZ_FIELD_ALL);
    ask(&dat_lmr_query, home.lmr, DAT_LMR_FIELD_ALL);
    ask(&dat_srq_query, home.srq, DAT_SRQ_FIELD_ALL);
    ask(&dat_psp_query, home.psp, DAT_PSP_FIELD_ALL);
    ask(&dat_rsp_query, home.rsp, DAT_RSP_FIELD_ALL);
    ask(&dat_cr_query, home.cr, DAT_CR_FIELD_ALL);
    return all;
  }
};

// HND-1, EVD-QUERY-3, EVD-WAIT-23, EVD-FREE-12, CNO-QUERY-3, CNO-FREE-5, IA-QUERY-8, IA-CLOSE-16, CTX-SET-7, CTX-GET-3,
// HTYPE-3, RC-3, RC-5: also where a null handle is allowed, it is another matter than a bad one.
TEST_P(ApiTable, NullIsRefusedWhereAnObjectIsNeeded) {
  Household home(GetParam());
  expect_refused(
      home,
      [](const ApiCall& call, std::size_t i) {
        return call.handles[i].null_is_allowed ? Handles{} : Handles{DAT_HANDLE_NULL};
      },
      "NULL");
}

// HND-4, HND-1, EVD-DEQ-8, EVD-POST-10, EVD-ENA-6, EVD-DIS-6: small integers, unaligned addresses, memory that is no
// object, addresses of no memory, and noise.
TEST_P(ApiTable, ValuesThatAreNoHandlesAreRefused) {
  Household home(GetParam());
  expect_refused(
      home,
      [&](const ApiCall& call, std::size_t i) {
        const DAT_HANDLE good = home.*call.handles[i].good;
        return impostors(good == DAT_HANDLE_NULL ? home.evd : good);
      },
      "the impostor");
}

// HND-3, GEN-2, EVD-RESIZE-12, EVD-UNW-7, EVD-CLRUNW-5, EVD-MODCNO-11, CNO-WAIT-12, CNO-CREATE-5, CNO-MOD-5
TEST_P(ApiTable, LiveObjectsOfAnotherTypeAreRefused) {
  Household home(GetParam());
  for (int i = 0; i < kHandleTypes; ++i) {
    const auto type = static_cast<DAT_HANDLE_TYPE>(i);
    const DAT_HANDLE other = home.of_type(type);
    if (other == DAT_HANDLE_NULL) continue;
    expect_refused(
        home,
        [&](const ApiCall& call, std::size_t position) {
          return takes(call, type) || call.handles[position].type == type ? Handles{} : Handles{other};
        },
        name_of_type(type));
  }
}

// HND-2, GEN-2, GEN-5: whatever it was of; freed one by one.
TEST_P(ApiTable, FreedObjectsAreRefused) {
  Household home(GetParam());
  Household gone(GetParam());
  gone.free_all();
  Handles stale;
  for (int type = 0; type < kHandleTypes; ++type) {
    const DAT_HANDLE handle = gone.of_type(static_cast<DAT_HANDLE_TYPE>(type));
    if (handle != DAT_HANDLE_NULL) stale.push_back(handle);
  }
  expect_refused(
      home, [&](const ApiCall&, std::size_t) { return stale; }, "the freed");
}

// HND-2, IA-CLOSE-8: and those that went with their adapter.
TEST_P(ApiTable, ObjectsOfAClosedAdapterAreRefused) {
  Household home(GetParam());
  Household gone(GetParam());
  ASSERT_THAT(dat_ia_close(gone.ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_refused(
      home, [&](const ApiCall& call, std::size_t i) { return Handles{gone.*call.handles[i].good}; }, "the closed");
}

// HND-7, GEN-12, CNO-WAIT-16: a live object of the right type, but of another instance of the adapter, beside objects
// of this one.
TEST_P(ApiTable, ObjectsOfAnotherInstanceAreRefused) {
  Household home(GetParam());
  const Household foreign(GetParam());
  for (const ApiCall& call : api_calls()) {
    if (call.handles.size() < 2) continue;
    for (std::size_t i = 1; i < call.handles.size(); ++i) {
      if (foreign.*call.handles[i].good == DAT_HANDLE_NULL) continue;
      Handles handles = call.good_handles(home);
      handles[i] = foreign.*call.handles[i].good;
      expect_invalid_handle(call, call.handles[i], call.call(home, handles), "the foreign", handles[i]);
    }
  }
}

// D2-HDR-10, HND-4: live objects that the library of the other version has made in this process, of whatever type.
TEST_P(ApiTable, ObjectsOfTheOtherVersionAreRefused) {
  Household home(GetParam());
  const OtherVersion other(GetParam().ia_name);
  EXPECT_EQ(other.handles().size(), 14U);
  expect_refused(
      home, [&](const ApiCall&, std::size_t) { return other.handles(); }, "the other version's");
}

#if DAT_VERSION_MAJOR == 2
// D2-QUERY-3: an adapter that has only been asked what it is stands for no object.
TEST_P(ApiTable, AQueryStandsForNoObject) {
  Household home(GetParam());
  DAT_IA_ATTR attr{};
  DAT_HANDLE query = DAT_HANDLE_NULL;
  std::string name = GetParam().ia_name;
  ASSERT_THAT(dat_ib_open_query(name.data(), &query, DAT_IA_FIELD_ALL, &attr, 0, nullptr), Succeeds());
  expect_refused(
      home,
      [&](const ApiCall& call, std::size_t) { return call.function() == "dat_ia_query" ? Handles{} : Handles{query}; },
      "the query");
  EXPECT_THAT(dat_ib_close_query(query), Succeeds());
  expect_refused(
      home, [&](const ApiCall&, std::size_t) { return Handles{query}; }, "the closed query");
}
#endif

// RC-6, GEN-6: after all of that nothing has changed.
TEST_P(ApiTable, RefusedCallsChangeNothing) {
  Household home(GetParam());
  const Household foreign(GetParam());
  const auto before = everything_about(home);
  expect_refused(
      home,
      [&](const ApiCall& call, std::size_t i) {
        Handles bad{reinterpret_cast<DAT_HANDLE>(std::uintptr_t{2})};
        if (!call.handles[i].null_is_allowed) bad.push_back(DAT_HANDLE_NULL);
        if (i > 0 && foreign.*call.handles[i].good != DAT_HANDLE_NULL) bad.push_back(foreign.*call.handles[i].good);
        return bad;
      },
      "the bad");
  EXPECT_EQ(everything_about(home), before);
  EXPECT_EQ(drain(home.async_evd), 0);
}

// RC-1, RC-7, GEN-13: with good arguments every call succeeds, and none says that it is not there.
TEST_P(ApiTable, EveryCallIsImplemented) {
  for (const ApiCall& call : api_calls()) {
    Household home(GetParam());
    const Handles handles = call.good_handles(home);
    if (call.name == "dat_cno_wait") post(home.evd);  // a trigger to be taken
    const DAT_RETURN rc = call.call(home, handles);
    if (call.may_lack && is_type(rc, DAT_MODEL_NOT_SUPPORTED)) continue;
    EXPECT_THAT(rc, Succeeds()) << call.name;
  }
}

// HND-9, RC-7: each entry of the provider's table, which the macros of old programs call through the first word of a
// handle, is there and answers; so none says that it is not implemented.
TEST_P(ApiTable, EveryEntryOfTheProvidersTableAnswers) {
  const Household home(GetParam());
  const DAT_PROVIDER* const provider = *static_cast<DAT_PROVIDER* const*>(home.ia);
#define ABI_SLOT(index, field, offset, type, function) \
  ASSERT_NE(provider->field, nullptr) << #field;       \
  EXPECT_THAT(answer_to_nothing(provider->field), HasType(DAT_INVALID_HANDLE)) << #field;
#include ANYDAT_ABI_FACTS
}

// The table is complete: it has every call of the provider table.
TEST(ApiTableItself, HasEveryCallThatTakesAHandle) {
  std::set<std::string> functions;
  for (const ApiCall& call : api_calls()) {
    functions.insert(call.function());
  }
#define ABI_SLOT(index, field, offset, type, function) EXPECT_TRUE(functions.contains(#function)) << #function;
#include ANYDAT_ABI_FACTS
}

ANYDAT_OVER_ALL_WIRES(ApiTable);

}  // namespace
}  // namespace anydat::test
