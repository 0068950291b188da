// SPDX-License-Identifier: BSD-3-Clause
// What a refused call says of itself: with DAT_LOG=warn one sentence on standard error that names both sides of the
// mismatch, and the same to anydat_last_error(); nothing by default.
#include <anydat/anydat.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "evd_fixture.h"
#include "handles_fixture.h"
#include "support/captured_errors.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// A call that is refused, and what its sentence must name: the call, what was given, and what it would have had to be.
struct Refusal {
  DAT_RETURN (*call)(Household& home);
  std::vector<std::string> words;
};

DAT_HANDLE made;

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> all{
      {[](Household& h) { return dat_evd_create(h.ia, 0, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made); },
       {"dat_evd_create", "evd_min_qlen 0", "positive"}},
      {[](Household& h) { return dat_evd_create(h.ia, 4, DAT_HANDLE_NULL, flags(0x800), &made); },
       {"dat_evd_create", "0x800", "0x1f1"}},
      {[](Household& h) { return dat_evd_create(h.ia, 0x7FFFFFFF, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made); },
       {"dat_evd_create", "2147483647", "max_evd_qlen"}},
      {[](Household& h) { return wait_evd(h.evd, 0, 65).rc; }, {"dat_evd_wait", "threshold 65", "64"}},
      {[](Household& h) { return dat_evd_resize(h.evd, -3); }, {"dat_evd_resize", "-3", "1"}},
      {[](Household& h) {
         DAT_EVENT event = software_event(1);
         event.event_number = DAT_DTO_COMPLETION_EVENT;
         return dat_evd_post_se(h.evd, &event);
       },
       {"dat_evd_post_se", "0x1 ", "0x10001"}},
      {[](Household& h) { return dat_evd_free(h.evd); }, {"dat_evd_free", "streams", "feed"}},
      {[](Household& h) {
         DAT_EVD_PARAM param{};
         return dat_evd_query(h.evd, static_cast<DAT_EVD_PARAM_MASK>(0x3F), &param);
       },
       {"dat_evd_query", "0x3f", "0x1f"}},
      {[](Household& h) { return dat_cno_free(h.cno); }, {"dat_cno_free", "1 EVDs", "0 threads"}},
      {[](Household& h) { return dat_ia_close(h.ia, static_cast<DAT_CLOSE_FLAGS>(0x8)); },
       {"dat_ia_close", "0x8", "graceful"}},
      {[](Household& h) { return dat_ep_set_watermark(h.idle, -2, 5); },
       {"dat_ep_set_watermark", "-2", "DAT_WATERMARK_INFINITE"}},
      {[](Household& h) {
         DAT_LMR_TRIPLET segment = h.segment();
         return dat_ep_post_send(h.idle, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG);
       },
       {"dat_ep_post_send", "UNCONNECTED"}},
      {[](Household& h) {
         DAT_LMR_TRIPLET segments[2] = {h.segment(), h.segment()};
         return dat_srq_post_recv(h.srq, 2, segments, {});
       },
       {"dat_srq_post_recv", "2", "1"}},
      {[](Household& h) { return dat_srq_set_lw(h.srq, 5); }, {"dat_srq_set_lw", "5", "4"}},
      {[](Household& h) { return dat_evd_enable(h.cno); }, {"dat_evd_enable", "evd_handle", "handle"}},
      {[](Household& h) { return dat_pz_free(h.pz); }, {"dat_pz_free", "objects", "zone"}},
  };
  return all;
}

// Makes every refused call and tells what it printed, in one line: line ends as '|'. Then its sentence as the extension
// reports it.
void play_refused_caller(RoleContext& context) {
  const CapturedErrors errors;
  Household home(context.wire);
  for (const Refusal& refusal : refusals()) {
    errors.take();
    const DAT_RETURN rc = refusal.call(home);
    std::string printed = errors.take();
    std::replace(printed.begin(), printed.end(), '\n', '|');
    context.parent.say(fmt::format("{:#x}", static_cast<unsigned>(rc)));
    context.parent.say(printed);
    context.parent.say(anydat_last_error());
  }
}
const Role kRefusedCaller("refused_caller", play_refused_caller);

class ApiLog : public testing::TestWithParam<Wire> {};

// Decision of docs/architecture.md; RC-3 besides.
TEST_P(ApiLog, RefusedCallSaysOneSentenceWithBothSides) {
  const ScopedEnv env(std::map<std::string, std::string>{{"DAT_LOG", "warn"}});
  PeerProcess caller("refused_caller", GetParam());
  EXPECT_GE(refusals().size(), 12u);
  for (const Refusal& refusal : refusals()) {
    const unsigned long rc = std::stoul(caller.channel().hear(), nullptr, 16);
    const std::string printed = caller.channel().hear();
    const std::string sentence = caller.channel().hear();
    SCOPED_TRACE(printed);
    EXPECT_NE(rc & DAT_CLASS_ERROR, 0u);
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '|'), 1) << "one line";
    EXPECT_EQ(printed, fmt::format("dat[{}] warn: {}|", caller.pid(), sentence));
    for (const std::string& word : refusal.words) {
      EXPECT_NE(sentence.find(word), std::string::npos) << word;
    }
  }
  EXPECT_EQ(caller.wait_exit(), 0);
}

// ENV-4: by default the log says nothing of a refused call; the caller may ask for the sentence.
TEST_P(ApiLog, NothingIsPrintedByDefault) {
  PeerProcess caller("refused_caller", GetParam());
  for (const Refusal& refusal : refusals()) {
    caller.channel().hear();
    EXPECT_EQ(caller.channel().hear(), "") << refusal.words[0];
    EXPECT_NE(caller.channel().hear().find(refusal.words[0]), std::string::npos) << refusal.words[0];
  }
  EXPECT_EQ(caller.wait_exit(), 0);
}

// Opens an adapter twice and tells what each time printed, as above.
void play_opener(RoleContext& context) {
  const CapturedErrors errors;
  for (int i = 0; i < 2; ++i) {
    const Ia ia(context.wire);
    std::string printed = errors.take();
    std::replace(printed.begin(), printed.end(), '\n', '|');
    context.parent.say(printed);
  }
}
const Role kOpener("opener", play_opener);

// Decision of docs/architecture.md: a mistake in the environment is not taken in silence by those who want to hear.
TEST_P(ApiLog, MistakesInTheEnvironmentAreWarnedAboutOnce) {
  const ScopedEnv env({{"DAT_LOG", "warn"}, {"DAT_SPIN", "50"}, {"DAT_RNR_TIMEOUT_MS", "soon"}});
  PeerProcess opener("opener", GetParam());
  const std::string first = opener.channel().hear();
  EXPECT_EQ(std::count(first.begin(), first.end(), '|'), 2) << first;
  EXPECT_NE(first.find("DAT_SPIN is not known"), std::string::npos) << first;
  EXPECT_NE(first.find("DAT_RNR_TIMEOUT_MS is 'soon'"), std::string::npos) << first;
  EXPECT_EQ(opener.channel().hear(), "");
  EXPECT_EQ(opener.wait_exit(), 0);
}

TEST_P(ApiLog, MistakesInTheEnvironmentAreNotPrintedByDefault) {
  const ScopedEnv env({{"DAT_SPIN", "50"}, {"DAT_RNR_TIMEOUT_MS", "soon"}});
  PeerProcess opener("opener", GetParam());
  EXPECT_EQ(opener.channel().hear(), "");
  EXPECT_EQ(opener.channel().hear(), "");
  EXPECT_EQ(opener.wait_exit(), 0);
}

// Uses an event dispatcher, frees it, closes, and tells what was printed, as above.
void play_counted(RoleContext& context) {
  const CapturedErrors errors;
  {
    const Ia ia(context.wire);
    Evd used(ia, DAT_EVD_SOFTWARE_FLAG, 4);
    const Evd unused(ia, DAT_EVD_SOFTWARE_FLAG, 4);
    DAT_EVENT event = software_event(1);
    for (int i = 0; i < 3; ++i) {
      if (dat_evd_post_se(used.get(), &event) != DAT_SUCCESS) throw std::runtime_error("dat_evd_post_se");
    }
  }
  std::string printed = errors.take();
  std::replace(printed.begin(), printed.end(), '\n', '|');
  context.parent.say(printed);
}
const Role kCounted("counted", play_counted);

// Decision of docs/counters.md: what an object has counted can be had without a change to the program.
TEST_P(ApiLog, AtLevelInfoEachObjectPrintsItsCountersWhenItGoes) {
  const ScopedEnv env(std::map<std::string, std::string>{{"DAT_LOG", "info"}});
  PeerProcess counted("counted", GetParam());
  const std::string printed = counted.channel().hear();
  EXPECT_NE(printed.find(fmt::format("dat[{}] info: EVD 0x", counted.pid())), std::string::npos) << printed;
  EXPECT_NE(printed.find(" counted events 3, most_queued 3|"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("EVD"), printed.rfind("EVD")) << "one that has counted nothing says nothing: " << printed;
  EXPECT_EQ(counted.wait_exit(), 0);
}

ANYDAT_OVER_ALL_WIRES(ApiLog);

}  // namespace
}  // namespace anydat::test
