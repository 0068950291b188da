// SPDX-License-Identifier: BSD-3-Clause
// What happens when there is no memory: EVD-CREATE-13 and EVD-RESIZE-8 of part 1. In a process of
// its own, whose address space is limited.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "evd_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

rlim_t address_space_in_use() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

// Leaves room for small things only: the calls that ask for tens of megabytes fail.
class NoRoom {
 public:
  NoRoom() {
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit low = before_;
    low.rlim_cur = address_space_in_use() + (rlim_t{2} << 20);
    ::setrlimit(RLIMIT_AS, &low);
  }
  ~NoRoom() { ::setrlimit(RLIMIT_AS, &before_); }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;

 private:
  rlimit before_{};
};

void play_poor_process(RoleContext& context) {
  const Ia ia(context.wire);
  const DAT_COUNT longest = ia.attributes().max_evd_qlen;
  Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 8);
  post_range(evd.get(), 1, 5);
  const DAT_COUNT before = evd.qlen();
  DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
  DAT_RETURN created = DAT_SUCCESS;
  DAT_RETURN resized = DAT_SUCCESS;
  {
    const NoRoom no_room;
    created = dat_evd_create(ia.get(), longest, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made);
    resized = dat_evd_resize(evd.get(), longest);
  }
  EXPECT_THAT(created, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_THAT(resized, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(evd.qlen(), before);
  post_range(evd.get(), 6, before - 5);
  EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL));
  EXPECT_EQ(take_all(evd.get()).size(), static_cast<std::size_t>(before));
  EXPECT_THAT(dat_evd_resize(evd.get(), longest), Succeeds()) << "with room it goes";
}
const Role kPoorProcess("poor_process", play_poor_process);

class EvdMemory : public testing::TestWithParam<Wire> {};

// EVD-CREATE-13, EVD-RESIZE-8, RC-6
TEST_P(EvdMemory, QueueThatDoesNotFitIsRefusedAndTheOldOneStays) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer needs more address space than there would be";
  PeerProcess process("poor_process", GetParam());
  EXPECT_EQ(process.wait_exit(), 0) << "what failed is in its output";
}

ANYDAT_OVER_ALL_WIRES(EvdMemory);

}  // namespace
}  // namespace anydat::test
