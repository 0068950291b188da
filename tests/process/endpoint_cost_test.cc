// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint takes of memory while it has no connection: room for requests, which there are none of before, is
// not part of it, however many the program may post.
#include <gtest/gtest.h>
#include <malloc.h>

#include <vector>

#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kEndpoints = 200;

std::size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::size_t bytes_of_one(const Side& side, DAT_COUNT requests) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = requests;
  std::vector<Ep> endpoints;
  endpoints.reserve(kEndpoints);
  const std::size_t before = bytes_in_use();
  for (std::size_t i = 0; i < kEndpoints; ++i) endpoints.emplace_back(side, attr);
  return (bytes_in_use() - before) / kEndpoints;
}

class EndpointCost : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, EndpointCost, testing::ValuesIn(all_wires()), wire_name);

TEST_P(EndpointCost, HasNoRequestsBeforeThereIsAConnection) {
  const Side side(GetParam());
  bytes_of_one(side, 1);  // what is kept for the next ones
  const std::size_t with_one = bytes_of_one(side, 1);
  EXPECT_LT(bytes_of_one(side, 512), with_one + 256);
}

}  // namespace
}  // namespace anydat::test
