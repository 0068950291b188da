// SPDX-License-Identifier: BSD-3-Clause
// Private data that come with a rejection (D2-CR-1, D2-CR-2, D2-CR-5, D2-CR-6), at the seam.
#include "base/big_endian.h"
#include "nic/refusal.h"
#include "wire/seam.h"

namespace anydat::test {
namespace {

class Rejection : public SeamTest {
 protected:
  Rejection() : server_nic(GetParam()), client_nic(GetParam()), service(server_nic), client(client_nic) {}

  // What arrives of a rejection with these.
  Bytes reject_with(const Bytes& data) {
    seam_connect(client, service.qual());
    EXPECT_TRUE(service.answer([&](nic::ConnectionRequest& request) { request.reject(data); }));
    EXPECT_TRUE(client.wait_for([&] { return client.failure.has_value(); }));
    EXPECT_EQ(client.failure, nic::ConnectFailure::rejected_by_peer);
    client_nic.held([&] { client->reset(); });
    client.failure.reset();
    return client.private_data;
  }

  SeamNic server_nic;
  SeamNic client_nic;
  SeamServer service;
  SeamEnd client;
};

Bytes bytes_from(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST_P(Rejection, ArrivesWithItsPrivateData) {
  // D2-CR-1, D2-CR-2: whole, whatever the size.
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{24}, std::size_t{48},
                                 nic::kPrivateDataMax}) {
    SCOPED_TRACE(size);
    EXPECT_EQ(reject_with(bytes_from(size)), bytes_from(size));
  }
}

TEST_P(Rejection, IsNotTakenForAWordOfTheNic) {
  // D2-CR-6: a program may say what a refusal, or a redirection to this very service point, looks like.
  for (const nic::Refusal::Why why :
       {nic::Refusal::Why::nobody_listens, nic::Refusal::Why::elsewhere, nic::Refusal::Why::here}) {
    for (const nic::ConnQual qual : {service.qual(), nic::ConnQual{1} << 40}) {
      const nic::RefusalBytes refusal = nic::write_refusal({why, qual});
      const Bytes data(refusal.data(), refusal.data() + refusal.size());
      EXPECT_EQ(reject_with(data), data);
      // What this travels as may be said as well.
      const nic::RejectionBytes rejection = nic::write_rejection(data);
      const Bytes travelling(rejection.data(), rejection.data() + rejection.size());
      EXPECT_EQ(reject_with(travelling), travelling);
    }
  }
}

TEST_P(Rejection, OfTheNicHasNone) {
  // D2-CR-5
  const nic::ConnQual gone = [&] { return SeamServer(server_nic).qual(); }();
  seam_connect(client, gone);
  ASSERT_TRUE(client.wait_for([&] { return client.failure.has_value(); }));
  EXPECT_EQ(client.failure, nic::ConnectFailure::refused);
  EXPECT_TRUE(client.private_data.empty());
}

INSTANTIATE_TEST_SUITE_P(Wires, Rejection, testing::ValuesIn(seam_wires()), seam_wire_name);

}  // namespace
}  // namespace anydat::test
