// SPDX-License-Identifier: BSD-3-Clause
// D2-HDR-10: libdat.so.1 and libdat2.so.2 in one process. This program is linked with that of 2.0, and loads a module
// that is linked with that of 1.2, as a program loads a plugin. (Handles of the other: ApiTable of the conformance
// tests, for every call of both versions.)
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "party.h"
#include "process/forked.h"
#include "support/patience.h"
#include "support/wire.h"

namespace anydat::test {
namespace {

class OneProcess : public testing::TestWithParam<Wire> {
 protected:
  // A party of each version; that of 1.2 was well if it is so to the end.
  struct OfModule {
    std::unique_ptr<Party> party;
    ~OfModule() { EXPECT_TRUE(party->well()) << "what it says stands above"; }
    Party& operator*() const { return *party; }
    Party* operator->() const { return party.get(); }
  };
  OneProcess() : environment_(GetParam().env), module_(dlopen(ANYDAT_PARTY_OF_12, RTLD_NOW | RTLD_LOCAL)) {
    if (!module_) throw std::runtime_error(dlerror());
    void* const make = dlsym(module_, kMakeParty);
    if (!make) throw std::runtime_error(dlerror());
    make_of_12_ = reinterpret_cast<MakeParty*>(make);
  }
  ~OneProcess() override { unload(); }
  void unload() {
    if (!module_) return;
    EXPECT_EQ(dlclose(module_), 0);
    module_ = nullptr;
  }

  OfModule of_12() const { return {std::unique_ptr<Party>(make_of_12_(GetParam().name.c_str()))}; }
  static std::unique_ptr<Party> of_20() { return make_party(GetParam().name); }

  static void connect(Party& caller, Party& listener) {
    caller.call(listener.listen());
    listener.accept();
    EXPECT_EQ(caller.next_event(), "ESTABLISHED");
    EXPECT_EQ(listener.next_event(), "ESTABLISHED");
  }
  static void tell(Party& from, Party& to, std::size_t bytes, unsigned seed) {
    to.offer_buffer();
    from.send(bytes, seed);
    to.receive(bytes, seed);
  }
  // Messages both ways, and RDMA both ways, with each kind of memory: what goes into a cell and what does not, and
  // often enough for each way that there is.
  static void converse(Party& one, Party& other) {
    unsigned seed = 0;
    for (const std::size_t bytes : {8UL, 5000UL, Party::kBytes}) {
      tell(one, other, bytes, ++seed);
      tell(other, one, bytes, ++seed);
      for (const Party::Memory memory : {Party::Memory::ordinary, Party::Memory::shareable}) {
        for (int round = 0; round < 5; ++round) {
          reach(one, other, memory, bytes, ++seed);
          reach(other, one, memory, bytes, ++seed);
        }
      }
    }
  }
  static void reach(Party& from, Party& to, Party::Memory memory, std::size_t bytes, unsigned seed) {
    const Place place = to.place(memory);
    from.write(place, bytes, seed);
    // A Read behind it finds what was written, and so does its owner then.
    from.read(place, bytes, seed);
    EXPECT_TRUE(to.holds(memory, bytes, seed)) << bytes;
    to.fill(memory, bytes, seed + 100);
    from.read(place, bytes, seed + 100);
  }
  // Two parties of the version, or one of each.
  static void talk_of_12(const OneProcess& test) {
    const OfModule one = test.of_12();
    const OfModule other = test.of_12();
    connect(*one, *other);
    converse(*one, *other);
  }
  static void talk_of_20() {
    const auto one = of_20();
    const auto other = of_20();
    connect(*one, *other);
    converse(*one, *other);
  }
  static void talk_of_both(const OneProcess& test) {
    const OfModule one = test.of_12();
    const auto other = of_20();
    connect(*one, *other);
    converse(*one, *other);
  }

  // What it throws fails the test.
  template <typename Work>
  static std::jthread started(Work work) {
    return std::jthread([work](const std::stop_token& over) {
      try {
        if constexpr (std::is_invocable_v<Work, std::stop_token>) {
          work(over);
        } else {
          work();
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }

 private:
  // Here, so that no thread changes it when an adapter is opened.
  const ScopedEnv environment_;
  void* module_;
  MakeParty* make_of_12_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Wires, OneProcess, testing::ValuesIn(all_wires()), wire_name);

TEST_P(OneProcess, OneOf12CallsOneOf20) {
  const OfModule caller = of_12();
  const auto listener = of_20();
  connect(*caller, *listener);
  converse(*caller, *listener);
}

TEST_P(OneProcess, OneOf20CallsOneOf12) {
  const auto caller = of_20();
  const OfModule listener = of_12();
  connect(*caller, *listener);
  converse(*caller, *listener);
}

// The calls of <anydat/anydat.h> have the same names in both libraries, and each caller reaches its own.
TEST_P(OneProcess, EachHasItsOwnOfOurCalls) {
  const OfModule one = of_12();
  const auto other = of_20();
  connect(*one, *other);
  tell(*one, *other, 100, 1);
  tell(*one, *other, 100, 2);
  tell(*other, *one, 100, 3);
  const std::string wire = GetParam().env.at("DAT_WIRE");
  for (Party* const party : {one.party.get(), other.get()}) {
    EXPECT_EQ(party->wire(), wire);
    EXPECT_TRUE(party->counts_its_own());
    EXPECT_NE(party->last_refusal().find("dat_pz_free"), std::string::npos);
  }
}

// A qualifier is one service point's, as between processes (PSP-CREATE-9).
TEST_P(OneProcess, AQualifierOfOneIsTakenForTheOther) {
  const OfModule one = of_12();
  const auto other = of_20();
  EXPECT_FALSE(other->listen_at(one->listen()));
  EXPECT_FALSE(one->listen_at(other->listen()));
  const std::uint64_t no_port = one->listen() + (std::uint64_t{1} << 40);
  EXPECT_TRUE(one->listen_at(no_port));
  EXPECT_FALSE(other->listen_at(no_port));
}

// What one closes, the other hears of as of any peer, and its other connections are as they were.
TEST_P(OneProcess, OneGoesOnWhenThatOf12IsClosedAndUnloaded) {
  const auto here = of_20();
  const auto there = of_20();
  const auto across = of_20();
  connect(*here, *there);
  {
    const OfModule other = of_12();
    connect(*across, *other);
    tell(*across, *other, 100, 1);
    other->leave_abruptly();
  }
  EXPECT_THAT(across->next_event(), testing::AnyOf("DISCONNECTED", "BROKEN"));
  unload();
  converse(*here, *there);
}
TEST_P(OneProcess, OneGoesOnWhenThatOf20IsClosed) {
  const OfModule here = of_12();
  const OfModule there = of_12();
  const OfModule across = of_12();
  connect(*here, *there);
  {
    const auto other = of_20();
    connect(*across, *other);
    tell(*across, *other, 100, 1);
    other->leave_abruptly();
  }
  EXPECT_THAT(across->next_event(), testing::AnyOf("DISCONNECTED", "BROKEN"));
  converse(*here, *there);
}

// Neither's progress waits for the other's.
TEST_P(OneProcess, BothWorkAtTheSameTime) {
  std::vector<std::jthread> threads;
  threads.push_back(started([this] { talk_of_12(*this); }));
  threads.push_back(started([] { talk_of_20(); }));
  threads.push_back(started([this] { talk_of_both(*this); }));
}

// docs/process-life.md: the child has nothing of either, and begins anew with both; the parent goes on.
TEST_P(OneProcess, AForkIsOneForBoth) {
  const OfModule one = of_12();
  const auto other = of_20();
  connect(*one, *other);
  tell(*one, *other, 100, 1);
  const auto both_begin_anew = [this] {
    const OfModule one_more = of_12();
    const auto another = of_20();
    connect(*one_more, *another);
    tell(*one_more, *another, Party::kBytes, 2);
    tell(*another, *one_more, 8, 3);
    reach(*one_more, *another, Party::Memory::shareable, Party::kBytes, 4);
    reach(*another, *one_more, Party::Memory::ordinary, 5000, 5);
    return one_more->well();
  };
  EXPECT_TRUE(holds_in_child([&] {
    EXPECT_FALSE(one->knows_its_objects());
    EXPECT_FALSE(other->knows_its_objects());
    return both_begin_anew() && holds_in_child(both_begin_anew);
  }));
  EXPECT_TRUE(one->knows_its_objects());
  EXPECT_TRUE(other->knows_its_objects());
  converse(*one, *other);
}

// A program closes all descriptors with an adapter of one version open, and opens one of the other. The libraries take
// the same numbers in the same order, so that what is left of the first finds the second's set and bell by its own.
TEST_P(OneProcess, OneThatHasTheNumbersOfOneThatLostThemIsLeftAlone) {
  EXPECT_TRUE(holds_in_child([this] {
    const auto here = [this] {
      const OfModule loser = of_12();
      ::closefrom(STDERR_FILENO + 1);
      return of_20();  // before that one is closed
    }();
    const auto there = of_20();
    connect(*there, *here);
    here->offer_buffer();
    {
      const std::jthread asleep = started([&here] { here->receive(100, 1); });
      std::this_thread::sleep_for(quiet_time());
      there->send(100, 1);
    }
    converse(*here, *there);
    return true;
  }));
}

// The handlers that each has for a fork take no lock that a thread inside the other could keep.
TEST_P(OneProcess, AForkComesWhileThreadsAreInsideBoth) {
  talk_of_both(*this);  // what the tests themselves make once is there then
  std::atomic<int> talks{0};
  const auto again = [&](const std::function<void()>& talk) {
    return started([&talks, talk](const std::stop_token& over) {
      for (; !over.stop_requested(); ++talks) talk();
    });
  };
  const std::jthread of_12_talks = again([this] { talk_of_12(*this); });
  const std::jthread of_20_talks = again([] { talk_of_20(); });
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      const OfModule one = of_12();
      const auto other = of_20();
      return one->knows_its_objects() && other->knows_its_objects();
    }));
  }
  EXPECT_TRUE(eventually([&] { return talks > 0; }));
}

}  // namespace
}  // namespace anydat::test
