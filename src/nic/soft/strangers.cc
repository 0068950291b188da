// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/strangers.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "env/log.h"
#include "nic/budget.h"
#include "os/descriptors.h"
#include "os/fork.h"
#include "os/random.h"
#include "os/slow_close.h"

namespace anydat::nic::soft {

namespace {

// One descriptor of so many is for strangers.
constexpr std::uint64_t kPart = 4;
constexpr std::size_t kShareMin = 4;
constexpr std::size_t kShareMax = 4096;
// An honest peer says what it wants with its first segments, and closes as soon as it is refused.
constexpr os::Nanoseconds kTimeToTalk = os::kNsPerSecond;
// Where a source has so large a part of the share its sockets have less, or all that wait behind them to be accepted
// would have to wait for as many seconds.
constexpr std::size_t kPartOfSource = 4;
constexpr os::Nanoseconds kTimeToTalkOfMany = 100'000'000;
constexpr os::Nanoseconds kTimeToLeave = 100'000'000;
// The program may take its time with the answer, but an honest one does not leave so many without.
constexpr os::Nanoseconds kTimeToAnswer = 5 * os::kNsPerSecond;
// And as soon as it hears that its connection is over, unless it still has to read what came before.
constexpr os::Nanoseconds kTimeToPart = os::kNsPerSecond;
// Of the share of those that were connections, that each adapter has whatever others have.
constexpr std::size_t kPartOfAdapter = 4;

// Of the whole process: those that are no connection yet, or never were one, by either way, and those that were.
struct InProcess {
  std::atomic<std::size_t> local{0};
  std::atomic<std::size_t> by_tcp{0};
  std::atomic<std::size_t> lingering{0};
};
constinit InProcess in_process;
// The child of a fork holds nothing of what was counted.
constinit os::AfterFork forget_all(
    [](void* counts) {
      static_cast<InProcess*>(counts)->local.store(0);
      static_cast<InProcess*>(counts)->by_tcp.store(0);
      static_cast<InProcess*>(counts)->lingering.store(0);
    },
    &in_process);

std::atomic<std::size_t>& all_of(Stranger::Stage stage, Stranger::By way) {
  if (stage == Stranger::Stage::lingering) return in_process.lingering;
  return way == Stranger::By::tcp ? in_process.by_tcp : in_process.local;
}

// By either way. What local ones have left behind is theirs.
struct Taken {
  std::size_t local = in_process.local.load(std::memory_order_relaxed) + os::closing_elsewhere();
  std::size_t by_tcp = in_process.by_tcp.load(std::memory_order_relaxed);
};

// About as many as the source has that has the most.
bool is_about(std::uint32_t count, std::uint32_t most) {
  return 4 * std::uint64_t{count} >= 3 * std::uint64_t{most};
}

// So that it is no address's, which has 32 bits in its lower half or a network's prefix.
constexpr std::uint64_t kOfThisHost = std::uint64_t{0xff} << 48;

// A host chooses freely among the 2^64 addresses of its IPv6 network: that network is one source.
std::uint64_t name_of(const Address& source) {
  std::uint64_t name = 0;
  if (source.generic.sa_family == AF_INET) {
    name = source.v4.sin_addr.s_addr;
  } else if (source.generic.sa_family == AF_INET6) {
    std::memcpy(&name, &source.v6.sin6_addr, sizeof name);
  }
  return name;
}

}  // namespace

// ---- one of them

Stranger::Stranger(Strangers& all, const Address& source, Stage stage)
    : Stranger(all, Source{By::tcp, name_of(source)}, stage) {}

Stranger::Stranger(Strangers& all, os::PeerName source, Stage stage)
    : Stranger(all, Source{By::local_socket, source ^ kOfThisHost}, stage) {}

Stranger::Stranger(Strangers& all, Source source, Stage stage)
    : all_(all), way_(source.way), source_(all.number_of(source.name)), stage_(stage), since_(os::now_ns()) {
  all_.at(stage_).push_back(*this);
  ++all_.counts(stage_, way_)[source_];
  all_of(stage_, way_).fetch_add(1, std::memory_order_relaxed);
}

Stranger::~Stranger() {
  leave();
}

void Stranger::enter(Stage stage) {
  if (!counted_ || stage == stage_) return;
  all_.at(stage_).remove(*this);
  stage_ = stage;
  since_ = os::now_ns();
  all_.at(stage_).push_back(*this);
}

void Stranger::leave() {
  if (!counted_) return;
  counted_ = false;
  all_.at(stage_).remove(*this);
  --all_.counts(stage_, way_)[source_];
  // A child that has started anew may see objects of its parent end.
  std::atomic<std::size_t>& all = all_of(stage_, way_);
  std::size_t count = all.load(std::memory_order_relaxed);
  while (count > 0 && !all.compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) {
  }
}

// ---- all of them

Strangers::Strangers() {
  forget_all.enlist();
  os::fill_random(std::as_writable_bytes(std::span(&secret_, 1)));
}

std::size_t Strangers::share() {
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(os::Descriptors::limit() / kPart, kShareMin, kShareMax));
}

std::uint16_t Strangers::number_of(std::uint64_t name) const {
  name = (name ^ secret_) * 0x9e3779b97f4a7c15u;
  name ^= name >> 29;
  name = (name ^ secret_ >> 7) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::uint16_t>(name >> 54);
}

// Of those that have one at that stage.
std::uint32_t Strangers::most_of_a_source(Stranger::Stage stage, By way) {
  const List& list = at(stage);
  const Counts& count_of = counts(stage, way);
  std::uint32_t most = 0;
  for (const Stranger* one = list.front(); one; one = list.after(*one)) {
    if (one->way_ == way) most = std::max(most, count_of[one->source_]);
  }
  return most;
}

// Of sources that have about so many.
Stranger* Strangers::oldest(Stranger::Stage stage, By way, std::uint32_t of_so_many, os::Nanoseconds age) {
  const List& list = at(stage);
  const Counts& count_of = counts(stage, way);
  const os::Nanoseconds before = os::now_ns() - age;
  for (Stranger* one = list.front(); one && one->since_ <= before; one = list.after(*one)) {
    if (one->way_ == way && is_about(count_of[one->source_], of_so_many)) return one;
  }
  return nullptr;
}

// Null also where only others have been there for so long: one of them would go for what they have nothing to do with.
Stranger* Strangers::of_busiest_source(Stranger::Stage stage, By way, os::Nanoseconds age) {
  return oldest(stage, way, most_of_a_source(stage, way), age);
}

// Null: none at the moment. A source with more than `many` has less time.
Stranger* Strangers::who_has_to_go(By way, std::size_t many) {
  using Stage = Stranger::Stage;
  const Counts& count_of = counts(Stage::silent, way);
  const std::uint32_t most = *std::max_element(count_of.begin(), count_of.end());
  if (Stranger* const one = oldest(Stage::silent, way, most, 0)) return one;
  if (Stranger* const one = of_busiest_source(Stage::leaving, way, kTimeToLeave)) return one;
  const std::uint32_t most_talk = most_of_a_source(Stage::talking, way);
  const os::Nanoseconds time = most_talk > many ? kTimeToTalkOfMany : kTimeToTalk;
  if (Stranger* const one = oldest(Stage::talking, way, most_talk, time)) return one;
  // Who has not said anything yet goes for none that will soon have to.
  if (Stranger* const one = of_busiest_source(Stage::silent, way, kTimeToTalkOfMany)) return one;
  return oldest(Stage::asking, way, most, kTimeToAnswer);
}

bool Strangers::has_room(By way) {
  const std::size_t share = Strangers::share();
  const std::size_t half = share / 2;
  const Taken taken;
  // What local peers have left behind keeps no other peer out, however much it is.
  if (std::min(taken.local, half) + taken.by_tcp >= share) return false;
  return way == By::tcp || taken.local < half;
}

// Where there is no room.
Stranger* Strangers::who_goes_for(By way) {
  const std::size_t share = Strangers::share();
  const Taken taken;
  By victims = By::tcp;
  if (way == By::local_socket && taken.local >= share / 2) {
    // Who leaves something behind makes no room by going, and others would not either.
    if (taken.local > share / 2) return nullptr;
    victims = By::local_socket;
  }
  return who_has_to_go(victims, share / kPartOfSource);
}

bool Strangers::may_come(By way) {
  if (!has_room(way)) {
    if (!warned_) {
      const Taken taken;
      env::log(env::LogLevel::warn,
               "{} sockets are open to callers that are not connected, of a quarter of RLIMIT_NOFILE: the longest "
               "silent ones are closed",
               taken.local + taken.by_tcp);
      warned_ = true;
    }
    if (!who_goes_for(way)) return false;
  }
  return !too_many_part() || may_be_cut_short();
}

// They had a descriptor each when they were connections, so no end of one is cut short for the ends of others. But who
// comes next is to find as many as there were, and not have to wait for as long as they like to take. An adapter that
// has few of them is none that keeps too many.
bool Strangers::too_many_part() {
  const std::size_t share = Strangers::share();
  return in_process.lingering.load(std::memory_order_relaxed) >= share &&
         at(Stranger::Stage::lingering).size() >= share / kPartOfAdapter;
}

// Those of other adapters belong to other engines.
Stranger* Strangers::may_be_cut_short() {
  return of_busiest_source(Stranger::Stage::lingering, By::tcp, kTimeToPart);
}

bool Strangers::one_has_come(By way) {
  Stranger* const stranger = has_room(way) ? nullptr : who_goes_for(way);
  if (stranger) turn_out(*stranger);
  Stranger* const end = too_many_part() ? may_be_cut_short() : nullptr;
  if (end) turn_out(*end);
  return stranger || end;
}

void Strangers::one_calls() {
  if (!too_many_part()) return;
  Stranger* end = may_be_cut_short();
  // The program comes before ends that have just begun, too, where they have twice their share.
  const bool very_many = in_process.lingering.load(std::memory_order_relaxed) >= kPart / 2 * share();
  if (!end && very_many) end = of_busiest_source(Stranger::Stage::lingering, By::tcp, 0);
  if (end) turn_out(*end);
}

void Strangers::one_lingers() {
  if (at(Stranger::Stage::lingering).size() <= budget::kLingeringPeers) return;
  turn_out(*of_busiest_source(Stranger::Stage::lingering, By::tcp, 0));
}

void Strangers::turn_out(Stranger& victim) {
  victim.turn_out();
  victim.leave();
}

}  // namespace anydat::nic::soft
