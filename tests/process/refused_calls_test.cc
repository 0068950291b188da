// SPDX-License-Identifier: BSD-3-Clause
// A call that is refused for want of memory has changed nothing: no object counts as in use by what was not made, and
// what was to be changed is as it was. Each allocation of each call fails in turn.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "no_memory.h"
#include "support/dat_fixture.h"
#include "support/dat_matchers.h"

namespace anydat::test {
namespace {

// Everything that a call can be given, of its own; that it can be freed is asked when it goes.
struct Parts {
  explicit Parts(const Ia& ia)
      : pz(ia),
        dto(ia, DAT_EVD_DTO_FLAG, 64),
        connect(ia, DAT_EVD_CONNECTION_FLAG, 64),
        requests(ia, DAT_EVD_CR_FLAG, 64),
        srq(ia, pz, 8),
        ep(ia, pz, {dto.get(), dto.get(), connect.get()}, default_ep_attr()) {}

  Pz pz;
  Evd dto, connect, requests;
  Srq srq;
  Ep ep;
};

class RefusedCalls : public testing::TestWithParam<Wire> {
 protected:
  // `call` says what came of it; `undo` takes back what has succeeded, `unchanged` looks whether nothing has happened.
  void play(
      const std::function<DAT_RETURN(Parts&)>& call, const std::function<DAT_RETURN(Parts&)>& undo,
      const std::function<void(Parts&)>& unchanged = [](Parts&) {}) {
    for (const NoMemory::Failing which : {NoMemory::Failing::one, NoMemory::Failing::all}) {
      Parts parts(ia);
      ASSERT_THAT(call(parts), Succeeds());  // what is kept for later is there
      ASSERT_THAT(undo(parts), Succeeds());
      int refused = 0;
      for (long working = 0;; ++working) {
        SCOPED_TRACE(working);
        DAT_RETURN rc = DAT_SUCCESS;
        {
          const NoMemory after(working, which);
          rc = call(parts);
        }
        if (rc == DAT_SUCCESS) {
          ASSERT_THAT(undo(parts), Succeeds());
          if (!NoMemory::has_failed_any()) break;
          continue;
        }
        ++refused;
        ASSERT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
        ASSERT_NO_FATAL_FAILURE(unchanged(parts));
      }
      // The one that fails may be another thread's.
      if (which == NoMemory::Failing::all) {
        EXPECT_GT(refused, 0);
      }
    }
  }
  // The same of a call that makes an object.
  void play_making(
      const std::function<DAT_RETURN(Parts&, DAT_HANDLE*)>& make, DAT_RETURN (*free)(DAT_HANDLE),
      const std::function<void(Parts&)>& unchanged = [](Parts&) {}) {
    DAT_HANDLE made = DAT_HANDLE_NULL;
    play([&](Parts& parts) { return make(parts, &made); }, [&](Parts&) { return free(made); }, unchanged);
  }

  Ia ia{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Wires, RefusedCalls, testing::ValuesIn(all_wires()), wire_name);

TEST_P(RefusedCalls, ThatMakeZonesAndNotificationObjects) {
  play_making([&](Parts&, DAT_HANDLE* made) { return dat_pz_create(ia.get(), made); }, dat_pz_free);
  play_making([&](Parts&, DAT_HANDLE* made) { return dat_cno_create(ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, made); },
              dat_cno_free);
}

TEST_P(RefusedCalls, ThatMakeAnEventDispatcherOrGiveItToACno) {
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  require(dat_cno_create(ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
  play_making([&](Parts&, DAT_HANDLE* made) { return dat_evd_create(ia.get(), 16, cno, DAT_EVD_DTO_FLAG, made); },
              dat_evd_free);
  EXPECT_THAT(dat_cno_free(cno), Succeeds()) << "it has no EVD";
}

TEST_P(RefusedCalls, ThatResizeChangeNoSize) {
  play([](Parts& parts) { return dat_evd_resize(parts.dto.get(), 128); },
       [](Parts& parts) { return dat_evd_resize(parts.dto.get(), 64); },
       [](Parts& parts) { EXPECT_EQ(parts.dto.qlen(), 64); });
  play([](Parts& parts) { return dat_srq_resize(parts.srq.get(), 100); },
       [](Parts& parts) { return dat_srq_resize(parts.srq.get(), 8); },
       [](Parts& parts) { EXPECT_EQ(parts.srq.size(), 8); });
}

TEST_P(RefusedCalls, ThatMakeRegionsAndWindows) {
  std::byte memory[64]{};
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory;
  play_making(
      [&](Parts& parts, DAT_HANDLE* made) {
        DAT_LMR_CONTEXT local = 0;
        DAT_RMR_CONTEXT remote = 0;
        DAT_VLEN size = 0;
        DAT_VADDR address = 0;
        return dat_lmr_create(ia.get(), DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, parts.pz.get(),
                              DAT_MEM_PRIV_ALL_FLAG, made, &local, &remote, &size, &address);
      },
      dat_lmr_free);
  play_making([](Parts& parts, DAT_HANDLE* made) { return dat_rmr_create(parts.pz.get(), made); }, dat_rmr_free);
}

TEST_P(RefusedCalls, ThatMakeSharedReceiveQueues) {
  DAT_SRQ_ATTR attr{.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
  play_making([&](Parts& parts, DAT_HANDLE* made) { return dat_srq_create(ia.get(), parts.pz.get(), &attr, made); },
              dat_srq_free);
}

TEST_P(RefusedCalls, ThatMakeServicePoints) {
  play_making(
      [&](Parts& parts, DAT_HANDLE* made) {
        DAT_CONN_QUAL qualifier = 0;
        return dat_psp_create_any(ia.get(), &qualifier, parts.requests.get(), DAT_PSP_CONSUMER_FLAG, made);
      },
      dat_psp_free);
  const auto unreserved = [](Parts& parts) { EXPECT_EQ(parts.ep.state(), DAT_EP_STATE_UNCONNECTED); };
  // A qualifier that no other test calls, as others may call any port: an RSP ends with its first request.
  const DAT_CONN_QUAL qualifier = (static_cast<DAT_CONN_QUAL>(::getpid()) << 20) + 1;
  play_making(
      [&](Parts& parts, DAT_HANDLE* made) {
        return dat_rsp_create(ia.get(), qualifier, parts.ep.get(), parts.requests.get(), made);
      },
      dat_rsp_free, unreserved);
}

TEST_P(RefusedCalls, ThatMakeEndpoints) {
  DAT_EP_ATTR attr = default_ep_attr();
  play_making(
      [&](Parts& parts, DAT_HANDLE* made) {
        return dat_ep_create(ia.get(), parts.pz.get(), parts.dto.get(), parts.dto.get(), parts.connect.get(), &attr,
                             made);
      },
      dat_ep_free);
  DAT_EP_ATTR srq_attr = default_srq_ep_attr();
  play_making(
      [&](Parts& parts, DAT_HANDLE* made) {
        return dat_ep_create_with_srq(ia.get(), parts.pz.get(), parts.dto.get(), parts.dto.get(), parts.connect.get(),
                                      parts.srq.get(), &srq_attr, made);
      },
      dat_ep_free);
}

TEST_P(RefusedCalls, ThatModifyAnEndpointLeaveItAsItWas) {
  // EP-MODIFY-1
  const Pz other(ia);
  constexpr auto kMask = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
                         DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV;
  const auto modify = [](const Parts& parts, DAT_PZ_HANDLE zone, DAT_COUNT depth, DAT_COUNT segments) {
    DAT_EP_PARAM wanted = parts.ep.query();
    wanted.pz_handle = zone;
    wanted.ep_attr.max_recv_dtos = wanted.ep_attr.max_request_dtos = depth;
    wanted.ep_attr.max_request_iov = segments;
    return dat_ep_modify(parts.ep.get(), kMask, &wanted);
  };
  const DAT_EP_ATTR usual = default_ep_attr();
  play([&](Parts& parts) { return modify(parts, other.get(), 200, 6); },
       [&](Parts& parts) { return modify(parts, parts.pz.get(), usual.max_recv_dtos, usual.max_request_iov); },
       [&](Parts& parts) {
         const DAT_EP_PARAM before = parts.ep.query();
         EXPECT_EQ(before.pz_handle, parts.pz.get());
         EXPECT_EQ(before.ep_attr.max_recv_dtos, usual.max_recv_dtos);
         EXPECT_EQ(before.ep_attr.max_request_iov, usual.max_request_iov);
       });
}

TEST_P(RefusedCalls, ThatConnectLeaveAnEndpointUnconnected) {
  const auto free_again = [&](Parts& parts) {
    parts.ep.reset();
    parts.ep = Ep(ia, parts.pz, {parts.dto.get(), parts.dto.get(), parts.connect.get()}, default_ep_attr());
    return DAT_RETURN{DAT_SUCCESS};
  };
  const Evd requests(ia, DAT_EVD_CR_FLAG);
  const Psp psp(ia, requests);
  play(
      [&](Parts& parts) {
        return dat_ep_connect(parts.ep.get(), loopback(), psp.qualifier(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                              DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
      },
      free_again, [](Parts& parts) { EXPECT_EQ(parts.ep.state(), DAT_EP_STATE_UNCONNECTED); });
}

}  // namespace
}  // namespace anydat::test
