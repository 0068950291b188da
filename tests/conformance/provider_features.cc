// SPDX-License-Identifier: BSD-3-Clause
// What the attributes of a Provider promise beyond numbers: each feature that it claims works (section 4.2 of part 1).
#include <cstring>
#include <string>

#include "evd_fixture.h"
#include "support/properties.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class ProviderFeatures : public MessageTest {};

// PRV-ATTR-4: the vector is the consumer's again with the completion, and here already when the post returns.
TEST_P(ProviderFeatures, VectorIsTheConsumersAgain) {
  const Connection pair = connect_pair(server, client);
  const bool at_return = server.ia.provider().iov_ownership_on_return == DAT_IOV_CONSUMER;
  DAT_LMR_TRIPLET to[2] = {sink.triplet(0, 16), sink.triplet(16, 16)};
  DAT_LMR_TRIPLET from[2] = {source.triplet(0, 16), source.triplet(16, 16)};
  source.bytes()[31] = std::byte{77};
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 2, to, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  if (at_return) std::memset(to, 0xFF, sizeof to);
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 2, from, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  if (at_return) std::memset(from, 0xFF, sizeof from);
  expect_completion(client.request.get());
  std::memset(from, 0xFF, sizeof from);
  EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, 32u);
  EXPECT_EQ(sink.bytes()[31], std::byte{77});
}

// PRV-ATTR-7: each flag that is listed is honoured by a post or an endpoint attribute; no other bit is.
TEST_P(ProviderFeatures, ListedCompletionFlagsAreAccepted) {
  const auto listed = static_cast<unsigned>(client.ia.provider().completion_flags_supported);
  const Evd recv(client.ia, DAT_EVD_DTO_FLAG);
  const Evd request(client.ia, DAT_EVD_DTO_FLAG);
  for (int bit = 0; bit < 8; ++bit) {
    const unsigned flag = 1u << bit;
    DAT_EP_ATTR attr = default_ep_attr();
    attr.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(flag);
    DAT_EP_HANDLE made = DAT_HANDLE_NULL;
    const DAT_RETURN rc =
        dat_ep_create(client.ia.get(), client.pz.get(), recv.get(), request.get(), client.connect.get(), &attr, &made);
    if ((listed & flag) == 0) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << std::hex << flag;
      continue;
    }
    ASSERT_THAT(rc, Succeeds()) << std::hex << flag;
    ASSERT_THAT(dat_ep_free(made), Succeeds());
  }
  DAT_EP_ATTR attr = default_ep_attr();
  attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  const Ep sender(client.ia, client.pz, {recv.get(), request.get(), client.connect.get()}, attr);
  const Ep receiver(server);
  connect_pair(server, receiver.get(), sender.get());
  int index = 0;
  for (const unsigned flag : {0x01u, 0x02u, 0x04u, 0x08u, 0x0Fu}) {
    if ((listed & flag) != flag) continue;
    post_recv(receiver, index);
    send(sender, index, static_cast<DAT_COMPLETION_FLAGS>(flag));
    expect_completion(server.recv.get());
    if ((flag & DAT_COMPLETION_SUPPRESS_FLAG) == 0) {
      expect_completion(request.get());
    }
    ++index;
  }
}

// PRV-ATTR-8, ATTR-1: every feature that the attributes claim can be used, and what they deny is refused.
TEST_P(ProviderFeatures, ClaimedFeaturesWork) {
  const DAT_PROVIDER_ATTR attr = server.ia.provider();
  EXPECT_EQ(attr.srq_supported, DAT_TRUE);
  EXPECT_EQ(attr.srq_watermarks_supported & 0x001, 0x001);
  EXPECT_EQ(attr.srq_info_supported, 0x11);
  const Srq srq(server.ia, server.pz, 8);
  EXPECT_NE(srq.available(), DAT_VALUE_UNKNOWN);
  EXPECT_NE(srq.outstanding(), DAT_VALUE_UNKNOWN);
  EXPECT_THAT(dat_srq_set_lw(srq.get(), 0), Succeeds());
  const Ep ep(server, srq);
  const auto expect_as_claimed = [](DAT_RETURN rc, bool claimed) {
    if (claimed) {
      EXPECT_THAT(rc, Succeeds());
    } else {
      EXPECT_THAT(rc, HasType(DAT_MODEL_NOT_SUPPORTED));
    }
  };
  expect_as_claimed(dat_ep_set_watermark(ep.get(), 2, DAT_WATERMARK_INFINITE),
                    (attr.srq_watermarks_supported & 0x010) != 0);
  expect_as_claimed(dat_ep_set_watermark(ep.get(), DAT_WATERMARK_INFINITE, 3),
                    (attr.srq_watermarks_supported & 0x100) != 0);
  const Connection connection = connect_pair(server, srq, client);
  DAT_COUNT allocated = 77;
  DAT_COUNT span = 77;
  ASSERT_THAT(dat_ep_recv_query(connection.server.get(), &allocated, &span), Succeeds());
  EXPECT_EQ(allocated, (attr.ep_recv_info_supported & 0x01) != 0 ? 0 : DAT_VALUE_UNKNOWN);
  EXPECT_EQ(span, (attr.ep_recv_info_supported & 0x10) != 0 ? 0 : DAT_VALUE_UNKNOWN);
  const Pz other(server.ia);
  const DAT_EP_ATTR srq_ep_attr = default_srq_ep_attr();
  DAT_EP_HANDLE in_other_zone = DAT_HANDLE_NULL;
  const DAT_RETURN zone_rc =
      dat_ep_create_with_srq(server.ia.get(), other.get(), server.recv.get(), server.request.get(),
                             server.connect.get(), srq.get(), &srq_ep_attr, &in_other_zone);
  if (attr.srq_ep_pz_difference_supported == DAT_TRUE) {
    ASSERT_THAT(zone_rc, Succeeds());
    EXPECT_THAT(dat_ep_free(in_other_zone), Succeeds());
  } else {
    EXPECT_THAT(zone_rc, HasType(DAT_INVALID_PARAMETER));  // EP-CSRQ-9
  }
  if (attr.ep_creator != DAT_PSP_CREATES_EP_NEVER) {
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_psp_create_any(server.ia.get(), &qualifier, server.requests.get(), DAT_PSP_PROVIDER_FLAG, &psp),
                Succeeds());
    EXPECT_THAT(dat_psp_free(psp), Succeeds());
  }
  for (const unsigned qos : {0x0u, 0x1u, 0x2u, 0x4u, 0x8u}) {
    DAT_EP_ATTR ep_attr = default_ep_attr();
    ep_attr.qos = static_cast<DAT_QOS>(qos);
    DAT_EP_HANDLE made = DAT_HANDLE_NULL;
    const EpEvds evds = evds_of(server);
    const DAT_RETURN rc =
        dat_ep_create(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect, &ep_attr, &made);
    if ((static_cast<unsigned>(attr.dat_qos_supported) & qos) == qos) {
      EXPECT_THAT(rc, Succeeds()) << qos;
      EXPECT_THAT(dat_ep_free(made), Succeeds());
    } else {
      EXPECT_THAT(rc, HasType(DAT_MODEL_NOT_SUPPORTED)) << qos;
    }
  }
}

// SRQ-ARR-3: how long a message waits for a buffer is an attribute, which follows the environment of dat_ia_open.
TEST_P(ProviderFeatures, TimeOfWaitingForABufferIsAnAttribute) {
  const std::string usual = provider_attribute(server.ia, "ANYDAT_RECEIVER_NOT_READY_MS");
  EXPECT_TRUE(usual == "unlimited" || usual == "0") << usual;
  Wire impatient = GetParam();
  for (const int limit : {0, 60, 250}) {
    impatient.env["DAT_RNR_TIMEOUT_MS"] = std::to_string(limit);
    const std::string set = provider_attribute(Ia(impatient), "ANYDAT_RECEIVER_NOT_READY_MS");
    ASSERT_THAT(set, testing::MatchesRegex("[0-9]+"));
    if (limit == 0 || usual == "0") {
      EXPECT_EQ(set, "0");
    } else {
      EXPECT_GE(std::stoi(set), limit);
      EXPECT_LE(std::stoi(set), 2 * limit) << "a device has a few time-outs to choose from";
    }
  }
}

// ATTR-1: what else an adapter may be unable to do is announced as well.
TEST_P(ProviderFeatures, OtherPropertiesAreAttributes) {
  using testing::AnyOf;
  EXPECT_THAT(provider_attribute(server.ia, "ANYDAT_SEND_COMPLETES"), AnyOf("sent", "received"));
  EXPECT_THAT(provider_attribute(server.ia, "ANYDAT_SOLICITED"), AnyOf("as sent", "always"));
  EXPECT_THAT(provider_attribute(server.ia, "ANYDAT_REMOTE_ERRORS"), AnyOf("told", "not told"));
  EXPECT_THAT(provider_attribute(server.ia, "ANYDAT_ACCEPT_COMPLETES"), AnyOf("confirmed", "at once"));
  EXPECT_THAT(provider_attribute(server.ia, "ANYDAT_PEER_DEATH"), AnyOf("broken", "disconnected or broken"));
}

// PRV-ATTR-2, PRV-ATTR-8
TEST_P(ProviderFeatures, ClaimedMemoryTypesWork) {
  ASSERT_EQ(server.ia.provider().lmr_mem_types_supported & 0x3, 0x3);
  for (const DAT_MEM_TYPE type : {DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_LMR}) {
    DAT_REGION_DESCRIPTION region{};
    if (type == DAT_MEM_TYPE_VIRTUAL) {
      region.for_va = sink.bytes().data();
    } else {
      region.for_lmr_handle = sink.get();
    }
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_lmr_create(server.ia.get(), type, region, 64, server.pz.get(), DAT_MEM_PRIV_ALL_FLAG,
                                         &lmr, nullptr, nullptr, nullptr, nullptr);
    ASSERT_THAT(rc, Succeeds()) << type;
    EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
  }
}

ANYDAT_OVER_ALL_WIRES(ProviderFeatures);

}  // namespace
}  // namespace anydat::test
