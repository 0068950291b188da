// SPDX-License-Identifier: BSD-3-Clause
// What libdat2.so.2 goes by while DAT_COMPAT says nothing: programs of uDAPL 2.0 were written on the stack of
// OpenFabrics (docs/porting.md).
#include <anydat/anydat.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "face20/fixture.h"
#include "support/captured_errors.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// Arguments: what DAT_COMPAT is set to, or nothing. Tells what an empty EVD's dequeue returns, the habit that shows at
// once (RC-2), and then all that opening an adapter has printed, in one line.
void play_compat_teller(RoleContext& context) {
  ::unsetenv("DAT_COMPAT");
  if (!context.arguments.empty()) ::setenv("DAT_COMPAT", context.arguments[0].c_str(), 1);
  ::setenv("DAT_LOG", "warn", 1);
  const CapturedErrors errors;
  const Side side(context.wire);
  DAT_EVENT event{};
  context.parent.say(fmt::format("{:#x}", static_cast<unsigned>(dat_evd_dequeue(side.recv.get(), &event))));
  std::string printed = errors.take();
  std::replace(printed.begin(), printed.end(), '\n', '|');
  context.parent.say(printed);
}
const Role kCompatTeller("compat_teller", play_compat_teller);

struct Told {
  bool bare;            // DAT_QUEUE_EMPTY without the class of errors
  std::string printed;  // about the environment
};

Told told_under(const Wire& wire, const std::vector<std::string>& compat) {
  PeerProcess teller("compat_teller", wire, compat);
  Told told;
  told.bare = (std::stoul(teller.channel().hear(), nullptr, 16) & DAT_CLASS_ERROR) == 0;
  for (std::string all = teller.channel().hear(); !all.empty(); all.erase(0, all.find('|') + 1)) {
    const std::string line = all.substr(0, all.find('|'));
    if (line.find("environment") != std::string::npos) told.printed += line;
  }
  EXPECT_EQ(teller.wait_exit(), 0);
  return told;
}

using Dat2Compat = Dat2;
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Compat, testing::ValuesIn(all_wires()), wire_name);

// ENV-4, RC-2: unset and empty are the same, and it is openfabrics then; a word that means nothing is as none, and the
// sentence about it names what is taken.
TEST_P(Dat2Compat, IsOpenfabricsUnlessTheEnvironmentSaysOtherwise) {
  for (const std::vector<std::string>& said : {std::vector<std::string>{}, {""}, {"openfabrics"}}) {
    const Told told = told_under(GetParam(), said);
    EXPECT_TRUE(told.bare) << said.size();
    EXPECT_EQ(told.printed, "");
  }
  for (const char* word : {"default", "strict"}) {
    const Told told = told_under(GetParam(), {word});
    EXPECT_FALSE(told.bare) << word;
    EXPECT_EQ(told.printed, "");
  }
  const Told mistaken = told_under(GetParam(), {"OpenFabrics"});
  EXPECT_TRUE(mistaken.bare);
  EXPECT_THAT(mistaken.printed, testing::HasSubstr("DAT_COMPAT is 'OpenFabrics'"));
  EXPECT_THAT(mistaken.printed, testing::EndsWith("taking openfabrics"));
}

// What datinfo --env shows, asked of this library.
TEST(Dat2CompatTold, TheEnvironmentTellsWhatHoldsWhileItIsUnset) {
  DAT_COUNT count = 0;
  ASSERT_THAT(anydat_get_environment(0, nullptr, &count), Succeeds());
  std::vector<ANYDAT_VARIABLE> rows(static_cast<std::size_t>(count), ANYDAT_VARIABLE{});
  ASSERT_THAT(anydat_get_environment(count, rows.data(), &count), Succeeds());
  const auto is_compat = [](const ANYDAT_VARIABLE& row) { return std::string_view(row.name) == "DAT_COMPAT"; };
  const auto row = std::find_if(rows.begin(), rows.end(), is_compat);
  ASSERT_NE(row, rows.end());
  EXPECT_STREQ(row->default_value, "openfabrics");
}

}  // namespace
}  // namespace anydat::test
