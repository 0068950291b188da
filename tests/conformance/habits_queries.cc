// SPDX-License-Identifier: BSD-3-Clause
// The habits of programs that query objects and adapters in their own way (src/face/habits.cc).
#include <gmock/gmock.h>

#include <cstring>
#include <ios>
#include <string>

#include "evd_fixture.h"
#include "habits_fixture.h"
#include "rmr_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

using testing::HasSubstr;

// D2-IA-7: of the port of a device, and of that of a software adapter.
TEST_P(HabitsTest, NamedAttributesAreThere) {
  const Ia ia(under("openfabrics", GetParam()));
  EXPECT_EQ(provider_attribute(ia, "DAT_IB_RDMA_READ"), "TRUE");
  const int mtu = std::stoi(provider_attribute(ia, "DAT_IB_TRANSPORT_MTU"));
  EXPECT_EQ(provider_attribute(ia, "DAT_IB_CONNECTIVITY_MODE"), "DIRECT");
  if (GetParam().ia_name.starts_with("soft")) {
    EXPECT_EQ(provider_attribute(ia, "DAT_IB_NODE_GUID"), "0000:0000:0000:0000");
    EXPECT_EQ(provider_attribute(ia, "DAT_IB_PORT_NUMBER"), "1");
    EXPECT_EQ(provider_attribute(ia, "DAT_IB_PORT_STATUS"), "ACTIVE");
    EXPECT_EQ(mtu, 2048);
  } else {
    EXPECT_NE(provider_attribute(ia, "DAT_IB_NODE_GUID"), "0000:0000:0000:0000");
    EXPECT_GE(std::stoi(provider_attribute(ia, "DAT_IB_PORT_NUMBER")), 1);
    EXPECT_EQ(provider_attribute(ia, "DAT_IB_PORT_STATUS"), "ACTIVE");
    EXPECT_TRUE(mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0) << mtu;
  }
  EXPECT_NO_THROW(provider_attribute(ia, "ANYDAT_SOLICITED")) << "ours are there, too";
  const Ia other(under("default", GetParam()));
  EXPECT_ANY_THROW(provider_attribute(other, "DAT_IB_RDMA_READ"));
  EXPECT_ANY_THROW(provider_attribute(other, "DAT_IB_NODE_GUID"));
}

// Queries an object twice into the same garbage: with one bit of the mask, and with all.
template <typename Mask, typename Param, typename Query>
void expect_same_whatever_the_mask(const char* what, DAT_UINT64 all, Query&& query) {
  const auto filled = [&](DAT_UINT64 mask) {
    Param param;
    std::memset(static_cast<void*>(&param), 0xa5, sizeof param);
    EXPECT_THAT(query(static_cast<Mask>(mask), &param), Succeeds()) << what;
    return std::string(reinterpret_cast<const char*>(&param), sizeof param);
  };
  const std::string whole = filled(all);
  for (DAT_UINT64 bit = 1; bit != 0 && bit <= all; bit <<= 1) {
    if ((all & bit) == 0) continue;
    EXPECT_TRUE(filled(bit) == whole) << what << ", mask " << std::hex << bit;
  }
}

template <typename Mask, typename Param>
void expect_same_whatever_the_mask(const char* what, DAT_HANDLE object, DAT_UINT64 all,
                                   DAT_RETURN (*query)(DAT_HANDLE, Mask, Param*)) {
  expect_same_whatever_the_mask<Mask, Param>(what, all,
                                             [&](Mask mask, Param* param) { return query(object, mask, param); });
}

TEST_P(HabitsTest, QueriesFillAllFields) {
  Side side(GetParam());
  const Cno cno(side.ia);
  const Srq srq(side.ia, side.pz, 4);
  const Ep ep(side);
  const Lmr lmr(side.ia, side.pz, 64);
  const Rmr rmr(side.pz);
  side.listen();
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  expect_same_whatever_the_mask<DAT_IA_ATTR_MASK, DAT_IA_ATTR>(
      "dat_ia_query", DAT_IA_FIELD_ALL, [&](DAT_IA_ATTR_MASK mask, DAT_IA_ATTR* attr) {
        return dat_ia_query(side.ia.get(), &async, mask, attr, 0, nullptr);
      });
  expect_same_whatever_the_mask<DAT_PROVIDER_ATTR_MASK, DAT_PROVIDER_ATTR>(
      "dat_ia_query", DAT_PROVIDER_FIELD_ALL, [&](DAT_PROVIDER_ATTR_MASK mask, DAT_PROVIDER_ATTR* attr) {
        return dat_ia_query(side.ia.get(), &async, 0, nullptr, mask, attr);
      });
  expect_same_whatever_the_mask("dat_ep_query", ep.get(), DAT_EP_FIELD_ALL, dat_ep_query);
  expect_same_whatever_the_mask("dat_evd_query", side.recv.get(), DAT_EVD_FIELD_ALL, dat_evd_query);
  expect_same_whatever_the_mask("dat_cno_query", cno.get(), DAT_CNO_FIELD_ALL, dat_cno_query);
  expect_same_whatever_the_mask("dat_pz_query", side.pz.get(), DAT_PZ_FIELD_ALL, dat_pz_query);
  expect_same_whatever_the_mask("dat_lmr_query", lmr.get(), DAT_LMR_FIELD_ALL, dat_lmr_query);
  expect_same_whatever_the_mask("dat_rmr_query", rmr.get(), DAT_RMR_FIELD_ALL, dat_rmr_query);
  expect_same_whatever_the_mask("dat_srq_query", srq.get(), DAT_SRQ_FIELD_ALL, dat_srq_query);
  expect_same_whatever_the_mask("dat_psp_query", side.psp->get(), DAT_PSP_FIELD_ALL, dat_psp_query);
}

// GEN-7, ARG-3: in queries only, since a change that is asked for and not made would be missed.
TEST_P(HabitsTest, UnknownMaskBitsAreNone) {
  const auto mask = static_cast<DAT_EP_PARAM_MASK>(0xffff);
  constexpr DAT_UINT64 kNobodys = 0x800;
  if ((DAT_EP_FIELD_ALL & kNobodys) != 0) GTEST_SKIP() << "that bit has a meaning in this version";
  DAT_EP_PARAM param{};
  const Side strict(under("strict", GetParam()));
  const Ep refused(strict);
  EXPECT_THAT(dat_ep_query(refused.get(), mask, &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(sentence(), HasSubstr("DAT_COMPAT=default"));
  const Side side(under("default", GetParam()));
  const Ep ep(side);
  EXPECT_THAT(dat_ep_query(ep.get(), mask, &param), Succeeds());
  EXPECT_EQ(param.ep_state, DAT_EP_STATE_UNCONNECTED);
  EXPECT_THAT(dat_ep_query(ep.get(), mask, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_modify(ep.get(), static_cast<DAT_EP_PARAM_MASK>(kNobodys), &param),
              HasType(DAT_INVALID_PARAMETER));
}

}  // namespace
}  // namespace anydat::test
