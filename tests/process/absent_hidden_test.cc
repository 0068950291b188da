// SPDX-License-Identifier: BSD-3-Clause
// Memory that is not there, of a program that has dropped privileges: the kernel keeps /proc of such a process from
// itself, and with it which of its pages are in memory (os/page_map.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absent_buffers.h"
#include "forked.h"

namespace anydat::test {
namespace {

constexpr uid_t kNobody = 65534;

// Becomes another user, who may do no more than make memory absent. False: this system does not let it, or shows the
// process its own pages all the same.
bool drop_privileges() {
  if (::prctl(PR_SET_KEEPCAPS, 1) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3]{};
  kept[0].effective = kept[0].permitted = 1u << CAP_SYS_PTRACE;
  if (::syscall(SYS_capset, &header, kept) != 0) return false;
  const int own = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (own >= 0) ::close(own);
  return own < 0 && AbsentMemory::possible();
}

// All of a test is in a child, which has no privileges to give back.
class AbsentForOneWithoutPrivileges : public AbsentBuffersOfAnother {
 protected:
  void SetUp() override {
    if (!holds_in_child(drop_privileges)) GTEST_SKIP() << "privileges cannot be dropped here, or hide nothing";
  }
  void TearDown() override {}

  // A message into a page that comes later, and one of another connection meanwhile.
  bool only_one_waits(std::size_t bytes) {
    if (!drop_privileges()) return false;
    AbsentBuffersOfAnother::SetUp();
    {
      AbsentMemory absent(memory_.first(kPage));
      post(*connection_, here_->triplet(0, bytes), bytes);
      post(*good_, here_->triplet(kBytes / 2, kPage), kPage);
      EXPECT_EQ(expect_completion(side_->recv.get()).ep_handle, good_->server.get());
      absent.fill(there_->bytes().first(kPage));
      EXPECT_EQ(expect_completion(side_->recv.get()).ep_handle, connection_->server.get());
      EXPECT_TRUE(std::ranges::equal(memory_.first(bytes), there_->bytes().first(bytes)));
    }
    AbsentBuffersOfAnother::TearDown();
    return true;
  }
};

TEST_P(AbsentForOneWithoutPrivileges, AShortMessageHoldsUpItsConnectionAlone) {
  EXPECT_TRUE(holds_in_child([this] { return only_one_waits(64); }));
}

TEST_P(AbsentForOneWithoutPrivileges, ALongMessageHoldsUpItsConnectionAlone) {
  EXPECT_TRUE(holds_in_child([this] { return only_one_waits(100'000); }));
}

INSTANTIATE_TEST_SUITE_P(Wires, AbsentForOneWithoutPrivileges, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
