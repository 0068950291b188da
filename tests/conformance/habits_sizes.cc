// SPDX-License-Identifier: BSD-3-Clause
// The habit of programs that move more than the sizes say with which they created their endpoint (src/face/habits.cc).
#include <anydat/anydat.h>
#include <gmock/gmock.h>

#include <cstring>

#include "rdma_fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kSaid = 4096;
constexpr std::size_t kBeyond = 1 << 20;

// A client whose endpoint was created with sizes of kSaid, connected to a server.
struct SmallEndpoint {
  explicit SmallEndpoint(const Wire& wire) : server(wire), client(wire) { connect_pair(server, to.get(), from.get()); }

  static DAT_EP_ATTR small() {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = kSaid;
    attr.max_rdma_size = kSaid;
    return attr;
  }
  DAT_RETURN send(DAT_LMR_TRIPLET segment) const {
    return dat_ep_post_send(from.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
  }
  void receive(DAT_LMR_TRIPLET segment) const {
    require(dat_ep_post_recv(to.get(), 1, &segment, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }

  Side server;
  Side client;
  Lmr sink{server.ia, server.pz, kBeyond};
  Lmr source{client.ia, client.pz, kBeyond};
  Ep to{server};
  Ep from{client.ia, client.pz, evds_of(client), small()};
};

class HabitsSizes : public testing::TestWithParam<Wire> {
 protected:
  static Wire under(const char* compat) {
    Wire wire = GetParam();
    wire.env["DAT_COMPAT"] = compat;
    return wire;
  }
};

TEST_P(HabitsSizes, OnlyTheAdaptersBoundTransfers) {
  const SmallEndpoint pair(under("openfabrics"));
  EXPECT_EQ(pair.from.query().ep_attr.max_message_size, kSaid) << "as it was asked for";
  EXPECT_EQ(pair.from.query().ep_attr.max_rdma_size, kSaid);
  const auto expect_moved = [&](std::size_t length, DAT_RETURN rc) {
    ASSERT_THAT(rc, Succeeds()) << length;
    EXPECT_EQ(expect_completion(pair.client.request.get()).transfered_length, length);
  };
  for (const std::size_t length : {kSaid, kSaid + 1, kBeyond}) {
    const DAT_LMR_TRIPLET local = pair.source.triplet(0, length);
    for (const DAT_UINT64 number : {1, 2}) {  // the second goes the way that the first has found
      fill_pattern(pair.source.bytes().first(length), number);
      expect_moved(length, rdma_write(pair.from, local, pair.sink.remote(0, length), number));
      fill_pattern(pair.source.bytes(), 99);
      expect_moved(length, rdma_read(pair.from, local, pair.sink.remote(0, length), number));
      EXPECT_TRUE(has_pattern(pair.source.bytes().first(length), number)) << length;
    }
    fill_pattern(pair.source.bytes().first(length), length);
    pair.receive(pair.sink.triplet(0, length));
    expect_moved(length, pair.send(local));
    EXPECT_EQ(expect_completion(pair.server.recv.get()).transfered_length, length);
    EXPECT_TRUE(has_pattern(pair.sink.bytes().first(length), length)) << length;
  }
}

TEST_P(HabitsSizes, WithoutTheHabitThoseOfTheEndpointDo) {  // DTO-8
  const SmallEndpoint pair(under("default"));
  const DAT_LMR_TRIPLET local = pair.source.triplet(0, kSaid + 1);
  const DAT_RMR_TRIPLET remote = pair.sink.remote(0, kSaid + 1);
  const auto expect_refused = [&](DAT_RETURN rc, const char* what) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << what;
    EXPECT_THAT(anydat_last_error(), testing::HasSubstr("DAT_COMPAT=openfabrics")) << what;
  };
  expect_refused(pair.send(local), "Send");
  expect_refused(rdma_write(pair.from, local, remote, 1), "RDMA Write");
  expect_refused(rdma_read(pair.from, local, remote, 1), "RDMA Read");
}

TEST_P(HabitsSizes, AnEndpointIsNotCreatedBeyondTheAdapters) {  // EP-CREATE-13
  const Side side(under("openfabrics"));
  DAT_IA_ATTR limits{};
  require(dat_ia_query(side.ia.get(), nullptr, DAT_IA_FIELD_ALL, &limits, 0, nullptr), "dat_ia_query");
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_size = limits.max_rdma_size + 1;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  EXPECT_THAT(
      dat_ep_create(side.ia.get(), side.pz.get(), side.recv.get(), side.request.get(), side.connect.get(), &attr, &ep),
      HasType(DAT_INVALID_PARAMETER));
}

ANYDAT_OVER_ALL_WIRES(HabitsSizes);

}  // namespace
}  // namespace anydat::test
