// SPDX-License-Identifier: BSD-3-Clause
// The habit of programs that take a CNO for a queue of triggers (src/face/habits.cc): with it each event triggers for
// itself.
#include <cstring>
#include <memory>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class HabitsCno : public testing::TestWithParam<Wire> {
 protected:
  static Wire under(const char* compat) {
    Wire wire = GetParam();
    wire.env["DAT_COMPAT"] = compat;
    return wire;
  }
};

TEST_P(HabitsCno, EachEventTriggersItsCno) {
  for (const char* compat : {"default", "openfabrics"}) {
    const Ia ia(under(compat));
    const Cno cno(ia);
    const Evd one(ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
    const Evd two(ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
    const auto told = [&] { return wait_cno(cno.get(), 0).evd; };
    for (const Evd* evd : {&one, &one, &two}) post(evd->get());
    EXPECT_EQ(told(), two.get());
    if (std::strcmp(compat, "default") == 0) {  // EVM-43
      EXPECT_EQ(told(), DAT_HANDLE_NULL);
      continue;
    }
    EXPECT_EQ(told(), one.get());
    post(two.get());
    EXPECT_EQ(told(), two.get()) << "the latest first";
    EXPECT_EQ(told(), one.get());
    EXPECT_EQ(told(), DAT_HANDLE_NULL) << "once for each event, although all are queued";

    post(one.get());
    EXPECT_EQ(take_all(one.get()).size(), 3u);
    EXPECT_EQ(told(), DAT_HANDLE_NULL) << "of no event that has been taken";

    BlockedCnoWait waiter(cno.get());
    post(one.get());
    EXPECT_EQ(waiter.result().evd, one.get());
    EXPECT_EQ(told(), DAT_HANDLE_NULL) << "the waiter has had it";
  }
}

TEST_P(HabitsCno, TriggersOfAnEvdGoWithIt) {  // EVD-MODCNO-8, EVD-MODCNO-10, CNO-WAIT-11
  const Ia ia(under("openfabrics"));
  const Cno cno(ia);
  const Cno other(ia);
  const Evd stays(ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
  const Evd moves(ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
  auto goes = std::make_unique<Evd>(ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
  for (const DAT_EVD_HANDLE evd : {stays.get(), moves.get(), goes->get()}) post(evd);
  ASSERT_THAT(dat_evd_modify_cno(moves.get(), other.get()), Succeeds());
  ASSERT_THAT(dat_evd_modify_cno(stays.get(), cno.get()), Succeeds());
  goes.reset();
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, stays.get());
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, DAT_HANDLE_NULL);
  EXPECT_EQ(wait_cno(other.get(), 0).evd, DAT_HANDLE_NULL);
  post(moves.get());
  EXPECT_EQ(wait_cno(other.get(), 0).evd, moves.get());
}

ANYDAT_OVER_ALL_WIRES(HabitsCno);

}  // namespace
}  // namespace anydat::test
