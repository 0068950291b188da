// SPDX-License-Identifier: BSD-3-Clause
// Every call of the API with null pointers and undefined bits: section 1.5 of part 1, GEN-7 of part 2.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "evd_fixture.h"
#include "handles_fixture.h"

namespace anydat::test {
namespace {

struct Case {
  std::string name;
  int argument;  // DAT_INVALID_ARGn of the refusal; 0 if no rule names the position
  std::function<DAT_RETURN(Household&)> call;
};

DAT_RETURN subtype_of(int argument) {
  return static_cast<DAT_RETURN>(DAT_INVALID_ARG1) + static_cast<DAT_RETURN>(argument - 1);
}

class ApiArguments : public testing::TestWithParam<Wire> {
 protected:
  void expect_refused(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      SCOPED_TRACE(each.name);
      const DAT_RETURN rc = each.call(home);
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
      EXPECT_EQ(DAT_IS_WARNING(rc), 0u);
      if (each.argument != 0) {
        EXPECT_THAT(rc, HasSubtype(subtype_of(each.argument)));
      }
    }
  }

  Household home{GetParam()};
};

// Room for results that are not to be.
DAT_HANDLE made;
DAT_CONN_QUAL qualifier;

template <typename Mask>
Mask mask(unsigned long long bits) {
  return static_cast<Mask>(bits);
}

// ARG-2, EVD-QUERY-5, EVD-WAIT-13, EVD-CREATE-12, CNO-CREATE-5, CNO-QUERY-4, CNO-WAIT-12, CTX-GET-4, HTYPE-4,
// IA-QUERY-6
TEST_P(ApiArguments, RequiredResultsMayNotBeNull) {
  const DAT_EP_ATTR attr = default_ep_attr();
  const DAT_EP_ATTR srq_ep_attr = default_srq_ep_attr();
  DAT_EVENT event{};
  DAT_COUNT count = 0;
  DAT_SRQ_ATTR srq_attr{.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 0};
  std::byte memory{};
  DAT_REGION_DESCRIPTION region{};
  region.for_va = &memory;
  std::string name = GetParam().ia_name;
  expect_refused({
      {"dat_ia_open async_evd_handle", 3, [&](Household&) { return dat_ia_open(name.data(), 4, nullptr, &made); }},
      {"dat_ia_open ia_handle", 4,
       [&](Household&) {
         DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
         return dat_ia_open(name.data(), 4, &evd, nullptr);
       }},
      {"dat_ia_query ia_attributes", 4,
       [](Household& h) { return dat_ia_query(h.ia, nullptr, DAT_IA_FIELD_ALL, nullptr, 0, nullptr); }},
      {"dat_ia_query provider_attributes", 6,
       [](Household& h) { return dat_ia_query(h.ia, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, nullptr); }},
      {"dat_get_consumer_context", 2, [](Household& h) { return dat_get_consumer_context(h.ia, nullptr); }},
      {"dat_get_handle_type", 2, [](Household& h) { return dat_get_handle_type(h.ia, nullptr); }},
      {"dat_cno_create", 3, [](Household& h) { return dat_cno_create(h.ia, no_agent(), nullptr); }},
      {"dat_cno_query", 3, [](Household& h) { return dat_cno_query(h.cno, DAT_CNO_FIELD_ALL, nullptr); }},
      {"dat_cno_wait", 3, [](Household& h) { return dat_cno_wait(h.cno, 0, nullptr); }},
      {"dat_evd_create", 5,
       [](Household& h) { return dat_evd_create(h.ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, nullptr); }},
      {"dat_evd_query", 3, [](Household& h) { return dat_evd_query(h.evd, DAT_EVD_FIELD_ALL, nullptr); }},
      {"dat_evd_wait event", 4, [&](Household& h) { return dat_evd_wait(h.evd, 0, 1, nullptr, &count); }},
      {"dat_evd_wait nmore", 5, [&](Household& h) { return dat_evd_wait(h.evd, 0, 1, &event, nullptr); }},
      {"dat_evd_dequeue", 2, [](Household& h) { return dat_evd_dequeue(h.evd, nullptr); }},
      {"dat_ep_create", 7,
       [&](Household& h) { return dat_ep_create(h.ia, h.pz, h.evd, h.evd, h.evd, &attr, nullptr); }},
      {"dat_ep_create_with_srq", 8,
       [&](Household& h) {
         return dat_ep_create_with_srq(h.ia, h.pz, h.evd, h.evd, h.evd, h.srq, &srq_ep_attr, nullptr);
       }},
      {"dat_ep_query", 3, [](Household& h) { return dat_ep_query(h.idle, DAT_EP_FIELD_ALL, nullptr); }},
      {"dat_pz_create", 2, [](Household& h) { return dat_pz_create(h.ia, nullptr); }},
      {"dat_pz_query", 3, [](Household& h) { return dat_pz_query(h.pz, DAT_PZ_FIELD_ALL, nullptr); }},
      {"dat_lmr_create", 7,
       [&](Household& h) {
         return dat_lmr_create(h.ia, DAT_MEM_TYPE_VIRTUAL, region, 1, h.pz, DAT_MEM_PRIV_ALL_FLAG, nullptr, nullptr,
                               nullptr, nullptr, nullptr);
       }},
      {"dat_lmr_query", 3, [](Household& h) { return dat_lmr_query(h.lmr, DAT_LMR_FIELD_ALL, nullptr); }},
      {"dat_rmr_create", 2, [](Household& h) { return dat_rmr_create(h.pz, nullptr); }},
      {"dat_psp_create", 5,
       [](Household& h) { return dat_psp_create(h.ia, h.unused_qualifier, h.evd, DAT_PSP_CONSUMER_FLAG, nullptr); }},
      {"dat_psp_create_any conn_qual", 2,
       [](Household& h) { return dat_psp_create_any(h.ia, nullptr, h.evd, DAT_PSP_CONSUMER_FLAG, &made); }},
      {"dat_psp_create_any psp_handle", 5,
       [](Household& h) { return dat_psp_create_any(h.ia, &qualifier, h.evd, DAT_PSP_CONSUMER_FLAG, nullptr); }},
      {"dat_psp_query", 3, [](Household& h) { return dat_psp_query(h.psp, DAT_PSP_FIELD_ALL, nullptr); }},
      {"dat_rsp_create", 5,
       [](Household& h) { return dat_rsp_create(h.ia, h.unused_qualifier, h.idle, h.evd, nullptr); }},
      {"dat_rsp_query", 3, [](Household& h) { return dat_rsp_query(h.rsp, DAT_RSP_FIELD_ALL, nullptr); }},
      {"dat_cr_query", 3, [](Household& h) { return dat_cr_query(h.cr, DAT_CR_FIELD_ALL, nullptr); }},
      {"dat_srq_create", 4, [&](Household& h) { return dat_srq_create(h.ia, h.pz, &srq_attr, nullptr); }},
      {"dat_srq_query", 3, [](Household& h) { return dat_srq_query(h.srq, DAT_SRQ_FIELD_ALL, nullptr); }},
  });
  if (home.rmr != DAT_HANDLE_NULL) {
    expect_refused(
        {{"dat_rmr_query", 3, [](Household& h) { return dat_rmr_query(h.rmr, DAT_RMR_FIELD_ALL, nullptr); }}});
  }
}

// GEN-14, GEN-7: nothing is written where no structure can be.
TEST_P(ApiArguments, StructuresForResultsAreAligned) {
  alignas(8) std::array<std::byte, sizeof(DAT_IA_ATTR) + 8> room;
  room.fill(std::byte{0x5A});
  const auto misaligned = [&room](auto* type) { return reinterpret_cast<decltype(type)>(room.data() + 2); };
  expect_refused({
      {"dat_ia_query", 4,
       [&](Household& h) {
         auto* const attr = misaligned(static_cast<DAT_IA_ATTR*>(nullptr));
         return dat_ia_query(h.ia, nullptr, DAT_IA_FIELD_ALL, attr, 0, nullptr);
       }},
      {"dat_ia_query provider_attributes", 6,
       [&](Household& h) {
         auto* const attr = misaligned(static_cast<DAT_PROVIDER_ATTR*>(nullptr));
         return dat_ia_query(h.ia, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, attr);
       }},
      {"dat_evd_query", 3,
       [&](Household& h) {
         return dat_evd_query(h.evd, DAT_EVD_FIELD_ALL, misaligned(static_cast<DAT_EVD_PARAM*>(nullptr)));
       }},
      {"dat_ep_query", 3,
       [&](Household& h) {
         return dat_ep_query(h.idle, DAT_EP_FIELD_ALL, misaligned(static_cast<DAT_EP_PARAM*>(nullptr)));
       }},
      {"dat_srq_query", 3,
       [&](Household& h) {
         return dat_srq_query(h.srq, DAT_SRQ_FIELD_ALL, misaligned(static_cast<DAT_SRQ_PARAM*>(nullptr)));
       }},
      {"dat_lmr_query", 3,
       [&](Household& h) {
         return dat_lmr_query(h.lmr, DAT_LMR_FIELD_ALL, misaligned(static_cast<DAT_LMR_PARAM*>(nullptr)));
       }},
  });
  EXPECT_TRUE(std::all_of(room.begin(), room.end(), [](std::byte byte) { return byte == std::byte{0x5A}; }));
}

// EVD-POST-8, EP-CSRQ-6, SRQ-CREATE-12, SRQ-POST-6, DTO-5, RDR-4, RDW-4, RMR-BIND-11, LMR-SYNC-9, EP-MODIFY-10, PD-2
TEST_P(ApiArguments, RequiredInputsMayNotBeNull) {
  expect_refused({
      {"dat_evd_post_se", 2, [](Household& h) { return dat_evd_post_se(h.evd, nullptr); }},
      {"dat_ep_create_with_srq", 7,
       [](Household& h) { return dat_ep_create_with_srq(h.ia, h.pz, h.evd, h.evd, h.evd, h.srq, nullptr, &made); }},
      {"dat_ep_modify", 0, [](Household& h) { return dat_ep_modify(h.idle, DAT_EP_FIELD_PZ_HANDLE, nullptr); }},
      {"dat_ep_connect private_data", 0,
       [](Household& h) {
         return dat_ep_connect(h.idle, loopback(), h.unused_qualifier, DAT_TIMEOUT_INFINITE, 1, nullptr,
                               DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
       }},
      {"dat_cr_accept private_data", 0, [](Household& h) { return dat_cr_accept(h.cr, h.idle, 1, nullptr); }},
      {"dat_ep_post_send", 0,
       [](Household& h) { return dat_ep_post_send(h.connected, 1, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG); }},
      {"dat_ep_post_recv", 0,
       [](Household& h) { return dat_ep_post_recv(h.connected, 1, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG); }},
      {"dat_ep_post_rdma_read remote_buffer", 0,
       [](Household& h) {
         DAT_LMR_TRIPLET segment = h.segment();
         return dat_ep_post_rdma_read(h.connected, 1, &segment, {}, nullptr, DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"dat_ep_post_rdma_write remote_buffer", 0,
       [](Household& h) {
         DAT_LMR_TRIPLET segment = h.segment();
         return dat_ep_post_rdma_write(h.connected, 1, &segment, {}, nullptr, DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"dat_lmr_create address", 0,
       [](Household& h) {
         return dat_lmr_create(h.ia, DAT_MEM_TYPE_VIRTUAL, {}, 16, h.pz, DAT_MEM_PRIV_ALL_FLAG, &made, nullptr, nullptr,
                               nullptr, nullptr);
       }},
      {"dat_lmr_sync_rdma_read", 0, [](Household& h) { return dat_lmr_sync_rdma_read(h.ia, nullptr, 1); }},
      {"dat_lmr_sync_rdma_write", 0, [](Household& h) { return dat_lmr_sync_rdma_write(h.ia, nullptr, 1); }},
      {"dat_srq_create", 3, [](Household& h) { return dat_srq_create(h.ia, h.pz, nullptr, &made); }},
      {"dat_srq_post_recv", 0, [](Household& h) { return dat_srq_post_recv(h.srq, 1, nullptr, {}); }},
  });
  if (home.rmr != DAT_HANDLE_NULL) {
    expect_refused({{"dat_rmr_bind", 0, [](Household& h) {
                       DAT_RMR_CONTEXT context = 0;
                       return dat_rmr_bind(h.rmr, nullptr, DAT_MEM_PRIV_REMOTE_READ_FLAG, h.connected, {},
                                           DAT_COMPLETION_DEFAULT_FLAG, &context);
                     }}});
  }
  // EP-CONN-10: the one null pointer with a code of its own.
  EXPECT_THAT(dat_ep_connect(home.idle, nullptr, home.unused_qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
              HasType(DAT_INVALID_ADDRESS));
}

// IA-QUERY-2, IA-QUERY-5, EP-RQ-12, EP-STATUS-7, EP-CREATE-11, LMR-CREATE-19, STRERR-8: these pointers may be null.
TEST_P(ApiArguments, OptionalPointersMayBeNull) {
  EXPECT_THAT(dat_ia_query(home.ia, nullptr, 0, nullptr, 0, nullptr), Succeeds());
  EXPECT_THAT(dat_ep_get_status(home.idle, nullptr, nullptr, nullptr), Succeeds());
  EXPECT_THAT(dat_ep_recv_query(home.idle, nullptr, nullptr), Succeeds());
  EXPECT_THAT(dat_ep_create(home.ia, home.pz, home.evd, home.evd, home.evd, nullptr, &made), Succeeds());
  DAT_LMR_TRIPLET segment = home.segment();
  DAT_REGION_DESCRIPTION region{};
  region.for_va = &segment;
  EXPECT_THAT(dat_lmr_create(home.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof segment, home.pz, DAT_MEM_PRIV_ALL_FLAG,
                             &made, nullptr, nullptr, nullptr, nullptr),
              Succeeds());
  EXPECT_THAT(dat_ep_post_recv(home.connected, 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_THAT(dat_ep_post_send(home.connected, 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_THAT(dat_srq_post_recv(home.srq, 0, nullptr, {}), Succeeds());
  const char* major = nullptr;
  EXPECT_THAT(dat_strerror(DAT_SUCCESS, &major, nullptr), Succeeds());
}

// ARG-3, GEN-7, EVD-QUERY-4, CNO-QUERY-4, IA-QUERY-7
TEST_P(ApiArguments, UndefinedMaskBitsAreRefused) {
  for (int bit = 0; bit < 32; ++bit) {
    const unsigned long long bits = 1ULL << bit;
    SCOPED_TRACE(bit);
    const auto expect = [&](const char* name, unsigned long long all, DAT_RETURN rc) {
      if ((bits & all) == 0) {
        EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << name;
      } else {
        EXPECT_THAT(rc, Succeeds()) << name;
      }
    };
    // Enumerations are 32 bits wide, and signed.
    if (bit < 31) {
      DAT_EVD_PARAM evd{};
      DAT_CNO_PARAM cno{};
      DAT_PZ_PARAM pz{};
      DAT_LMR_PARAM lmr{};
      DAT_PSP_PARAM psp{};
      DAT_RSP_PARAM rsp{};
      DAT_CR_PARAM cr{};
      DAT_SRQ_PARAM srq{};
      expect("dat_evd_query", 0x1F, dat_evd_query(home.evd, mask<DAT_EVD_PARAM_MASK>(bits), &evd));
      expect("dat_cno_query", 0x3, dat_cno_query(home.cno, mask<DAT_CNO_PARAM_MASK>(bits), &cno));
      expect("dat_pz_query", 0x1, dat_pz_query(home.pz, mask<DAT_PZ_PARAM_MASK>(bits), &pz));
      expect("dat_lmr_query", 0x3FF, dat_lmr_query(home.lmr, mask<DAT_LMR_PARAM_MASK>(bits), &lmr));
      expect("dat_psp_query", 0xF, dat_psp_query(home.psp, mask<DAT_PSP_PARAM_MASK>(bits), &psp));
      expect("dat_rsp_query", 0xF, dat_rsp_query(home.rsp, mask<DAT_RSP_PARAM_MASK>(bits), &rsp));
      expect("dat_cr_query", 0x1F, dat_cr_query(home.cr, mask<DAT_CR_PARAM_MASK>(bits), &cr));
      expect("dat_srq_query", 0xFF, dat_srq_query(home.srq, mask<DAT_SRQ_PARAM_MASK>(bits), &srq));
    }
    DAT_EP_PARAM ep{};
    DAT_IA_ATTR ia{};
    DAT_PROVIDER_ATTR provider{};
    expect("dat_ep_query", 0x7FFFF7FF, dat_ep_query(home.idle, mask<DAT_EP_PARAM_MASK>(bits), &ep));
    expect("dat_ia_query", 0x7FFFFFFFF, dat_ia_query(home.ia, nullptr, bits, &ia, 0, nullptr));
    expect("dat_ia_query provider", 0x3FFFFFF, dat_ia_query(home.ia, nullptr, 0, nullptr, bits, &provider));
  }
}

// ARG-3, IA-CLOSE-17, EVD-CREATE-7, LMR-CREATE-9, PSP-CREATE-7, EP-DISC-16, EP-CONN-11, DTO-35, RMR-BIND-8
TEST_P(ApiArguments, UndefinedFlagBitsAreRefused) {
  DAT_LMR_TRIPLET segment = home.segment();
  const DAT_RMR_TRIPLET remote = home.remote_segment();
  DAT_REGION_DESCRIPTION region{};
  region.for_va = &segment;
  for (const unsigned bits : {0x20u, 0x100000u, 0x40000000u}) {
    SCOPED_TRACE(bits);
    const auto completion = static_cast<DAT_COMPLETION_FLAGS>(bits);
    expect_refused({
        {"dat_ia_close", 2, [=](Household& h) { return dat_ia_close(h.ia, static_cast<DAT_CLOSE_FLAGS>(bits)); }},
        {"dat_evd_create", 0,
         [=](Household& h) { return dat_evd_create(h.ia, 4, DAT_HANDLE_NULL, flags(bits | 0x2001u), &made); }},
        {"dat_lmr_create", 0,
         [=](Household& h) {
           return dat_lmr_create(h.ia, DAT_MEM_TYPE_VIRTUAL, region, 8, h.pz,
                                 static_cast<DAT_MEM_PRIV_FLAGS>(bits | 0x4u), &made, nullptr, nullptr, nullptr,
                                 nullptr);
         }},
        {"dat_psp_create_any", 4,
         [=](Household& h) {
           return dat_psp_create_any(h.ia, &qualifier, h.evd, static_cast<DAT_PSP_FLAGS>(bits), &made);
         }},
        {"dat_ep_disconnect", 2,
         [=](Household& h) { return dat_ep_disconnect(h.connected, static_cast<DAT_CLOSE_FLAGS>(bits)); }},
        {"dat_ep_connect", 0,
         [=](Household& h) {
           return dat_ep_connect(h.idle, loopback(), h.unused_qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                                 DAT_QOS_BEST_EFFORT, static_cast<DAT_CONNECT_FLAGS>(bits));
         }},
        {"dat_ep_post_send", 0,
         [&](Household& h) { return dat_ep_post_send(h.connected, 1, &segment, {}, completion); }},
        {"dat_ep_post_recv", 0,
         [&](Household& h) { return dat_ep_post_recv(h.connected, 1, &segment, {}, completion); }},
        {"dat_ep_post_rdma_read", 0,
         [&](Household& h) { return dat_ep_post_rdma_read(h.connected, 1, &segment, {}, &remote, completion); }},
        {"dat_ep_post_rdma_write", 0,
         [&](Household& h) { return dat_ep_post_rdma_write(h.connected, 1, &segment, {}, &remote, completion); }},
    });
  }
}

// ARG-1: of several errors any one is reported; nothing but an error, and no crash.
TEST_P(ApiArguments, SeveralErrorsAtOnceAreOneError) {
  for (const DAT_RETURN rc :
       {dat_evd_create(home.evd, -1, home.ia, flags(0), nullptr), dat_evd_wait(home.ia, 0, -1, nullptr, nullptr),
        dat_cno_query(home.evd, mask<DAT_CNO_PARAM_MASK>(0x40), nullptr),
        dat_ep_create(home.evd, home.evd, home.pz, home.pz, home.pz, nullptr, nullptr),
        dat_srq_create(home.pz, home.ia, nullptr, nullptr)}) {
    EXPECT_TRUE(is_type(rc, DAT_INVALID_HANDLE) || is_type(rc, DAT_INVALID_PARAMETER)) << describe(rc);
  }
}

ANYDAT_OVER_ALL_WIRES(ApiArguments);

}  // namespace
}  // namespace anydat::test
