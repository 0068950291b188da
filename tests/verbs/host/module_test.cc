// SPDX-License-Identifier: BSD-3-Clause
// The module for RDMA devices beside libdat, on any machine: it loads, both have the same idea of what they share, and
// what the two of them open, watch and close is theirs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "process/forked.h"
#include "support/dat_fixture.h"
#include "support/few_descriptors.h"
#include "support/properties.h"
#include "verbs/host/fake_device.h"

namespace anydat::test {
namespace {

const Wire kFake{.name = "fake", .ia_name = "verbs-fake0", .env = {}};

bool has_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = list; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    found |= ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr) >> 24 != 127;
  }
  freeifaddrs(list);
  return found;
}

class VerbsModule : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_address()) GTEST_SKIP() << "a device has an address that is not loopback, and this host has none";
  }
  // Uses every part of the adapter that needs no peer: progress, regions, queues, service points, an attempt.
  static void use(Side& side) {
    const Lmr memory(side.ia, side.pz, 4096);
    const Srq srq(side.ia, side.pz, 16);
    const Ep ep(side);
    for (const DAT_CONN_QUAL qualifier : {side.listen(), DAT_CONN_QUAL{72538}}) {
      require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG),
              "dat_ep_connect");
      expect_event(side.connect.get(), DAT_CONNECTION_EVENT_UNREACHABLE);
      require(dat_ep_reset(ep.get()), "dat_ep_reset");
    }
  }
};

TEST_F(VerbsModule, GivesBackAllThatItHasMade) {
  { const Ia first(kFake); }  // an identifier of each device stays bound, with its channel
  const int before = fake::objects();
  {
    Side side(kFake);
    use(side);
    EXPECT_GT(fake::objects(), before);
  }
  EXPECT_EQ(fake::objects(), before);
}

// IA-OPEN-25, and not IA-OPEN-23: the devices of a host are looked for with a descriptor.
TEST_F(VerbsModule, ItsDeviceIsNotSaidToBeNoneForWantOfDescriptors) {
  { const Ia first(kFake); }
  const auto open = [](std::string name) {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    return dat_ia_open(name.data(), 4, &async, &ia);
  };
  {
    const FewDescriptors none(0);
    EXPECT_THAT(open(kFake.ia_name), HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_THAT(open("of-another-provider"), HasType(DAT_PROVIDER_NOT_FOUND));
  }
  EXPECT_THAT(open("verbs-fake7"), HasType(DAT_PROVIDER_NOT_FOUND));
  const Ia again(kFake);
}

// D2-IA-7: the device's own, of the port that is active.
TEST_F(VerbsModule, ShowsTheNumberAndThePortOfTheDevice) {
  Wire fake = kFake;
  fake.env["DAT_COMPAT"] = "openfabrics";
  const Ia ia(fake);
  EXPECT_EQ(provider_attribute(ia, "DAT_IB_NODE_GUID"), "0002:c903:0004:a5e0");
  EXPECT_EQ(provider_attribute(ia, "DAT_IB_PORT_NUMBER"), "2");
  EXPECT_EQ(provider_attribute(ia, "DAT_IB_PORT_STATUS"), "ACTIVE");
  EXPECT_EQ(provider_attribute(ia, "DAT_IB_TRANSPORT_MTU"), "4096");
}

// SRQ-CREATE-15, ATTR-1, GEN-13: the attributes say it, and the call.
TEST_F(VerbsModule, OfADeviceWithoutSharedQueuesHasNoSrq) {
  const fake::WithoutSharedQueues none;
  const Side side(kFake);
  const DAT_PROVIDER_ATTR provider = side.ia.provider();
  EXPECT_EQ(provider.srq_supported, DAT_FALSE);
  EXPECT_EQ(provider.srq_watermarks_supported, 0);
  EXPECT_EQ(provider.srq_info_supported, 0);
  DAT_SRQ_ATTR attr{.max_recv_dtos = 1, .max_recv_iov = 1, .low_watermark = 0};
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_srq_create(side.ia.get(), side.pz.get(), &attr, &srq), HasType(DAT_MODEL_NOT_SUPPORTED));
  const Ep ep(side);  // endpoints have queues of their own
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
}

TEST_F(VerbsModule, ItsChildHasNoneOfItsDescriptorsAndBeginsAnew) {
  Side side(kFake);
  use(side);
  const DAT_EVD_HANDLE old = side.recv.get();
  EXPECT_TRUE(holds_in_child([&] {
    for (const int fd : fake::descriptors()) EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << fd;
    EXPECT_THAT(dat_evd_free(old), HasType(DAT_INVALID_HANDLE));
    Side own(kFake);
    use(own);
    return true;
  }));
  use(side);
}

TEST_F(VerbsModule, TouchesNoFileOfAProgramThatHasClosedItsDescriptors) {
  EXPECT_TRUE(holds_in_child([&] {
    auto* const side = new Side(kFake);
    use(*side);
    // All numbers are a file's from now on.
    const int file = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const long top = ::sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < std::min(top, 4096L); ++fd) {
      if (fd != file && ::fcntl(fd, F_GETFD) == 0) ::dup3(file, fd, O_CLOEXEC);
    }
    const DAT_IA_HANDLE ia = side->ia.get();
    EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    struct stat status {};
    EXPECT_EQ(::fstat(file, &status), 0);
    EXPECT_EQ(status.st_size, 0) << "something has been written";
    Side again(kFake);
    use(again);
    EXPECT_EQ(::fstat(file, &status), 0);
    EXPECT_EQ(status.st_size, 0) << "something has been written";
    return true;
  }));
}

}  // namespace
}  // namespace anydat::test
