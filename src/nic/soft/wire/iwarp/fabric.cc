// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/fabric.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

// A look at a socket is a system call. While nothing comes, other sources are not slowed down by one each time.
constexpr unsigned kVainLooksMax = 20'000;
constexpr unsigned kLookSeldom = 64;
constexpr unsigned kLooksPerLookAtAll = 8;
constexpr unsigned kLooksPerLookAtOthers = 64;

constexpr os::Nanoseconds kMemoryRetry = 10'000'000;

}  // namespace

Fabric::Fabric(SoftAdapter& adapter)
    : adapter_(adapter),
      backlogs_([this] { engine().wake_if_armed(); }),
      setups_and_ends_(*this),
      silence_timer_([this] { look_for_silence(); }),
      memory_timer_([this] {
        for (TcpStream* const stream : streams_) schedule_turn(stream->reading_turn());
      }) {}

Fabric::~Fabric() = default;

Status Fabric::start() {
  if (!ready_.open() || !engine().watch(ready_.fd(), EPOLLIN, *this)) return Status::no_memory;
  engine().add_source(*this);
  return Status::ok;
}

void Fabric::shut_down() {
  setups_and_ends_.shut_down();
  engine().cancel_timer(silence_timer_);
  engine().cancel_timer(memory_timer_);
  if (!ready_.is_open()) return;
  engine().remove_source(*this);
  engine().unwatch(ready_.fd(), *this);
}

void Fabric::descriptors_lost() {
  ready_.note_loss();
  const std::vector<TcpStream*> streams(streams_.begin(), streams_.end());
  for (TcpStream* stream : streams) {
    if (streams_.contains(stream)) stream->descriptors_lost();
  }
  setups_and_ends_.descriptors_lost();
}

Engine& Fabric::engine() const {
  return adapter_.engine();
}

ListenerEvents* Fabric::listener(ConnQual qual) const {
  const auto found = listeners_.find(qual);
  return found != listeners_.end() ? found->second : nullptr;
}

bool Fabric::watch(TcpStream& stream, int fd) {
  if (!engine().descriptor_loss().descriptors_are_ours()) return false;
  try {
    streams_.insert(&stream);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!ready_.add(stream, fd)) {
    streams_.erase(&stream);
    return false;
  }
  vain_looks_ = 0;
  if (streams_.size() == 1 && adapter_.config().silence_ns != os::kForever) {
    engine().set_timer(silence_timer_, os::now_ns() + silence_interval());
  }
  return true;
}

void Fabric::unwatch(TcpStream& stream, int fd) {
  ready_.remove(stream, fd);
  streams_.erase(&stream);
  busy_.forget(stream);
}

void Fabric::schedule_turn(Turn& turn) {
  turns_.add(turn);
  somebody_waits_.store(true);
  engine().wake_if_armed();
}

void Fabric::come_back_with_memory() {
  memory_lacked_.store(true);
  somebody_waits_.store(true);
  engine().wake_if_armed();
}

void Fabric::come_back_to_read(Turn& turn) {
  forget(turn);
  some_read_on_ = true;
  schedule_turn(turn);
}

// The round stops here, and goes on with this one when those that have had word have had a turn.
void Fabric::keep_turn(Turn& turn) {
  turns_.keep(turn);
  stopped_ = true;
  somebody_waits_.store(true);
  engine().wake_if_armed();
}

void Fabric::come_back_in_time(Turn& turn) {
  if (!turns_.add(turn)) return;
  somebody_waits_.store(true);
  engine().want_pass();
}

// One that has been stopped goes on.
void Fabric::begin_round() {
  if (turns_.left() > 0 || !somebody_waits_.load(std::memory_order_relaxed)) return;
  somebody_waits_.exchange(false);
  if (memory_lacked_.exchange(false) && !memory_timer_.pending())
    engine().set_timer(memory_timer_, os::now_ns() + kMemoryRetry);
  turns_.begin_round();
}

bool Fabric::run_turns() {
  if (turns_.left() == 0) return false;
  stopped_ = false;
  bool progress = false;
  while (turns_.left() > 0 && !stopped_) progress |= turns_.next().stream.turn();
  if (!turns_.empty()) somebody_waits_.store(true);
  return progress;
}

bool Fabric::poll() {
  passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (streams_.empty() && !somebody_waits_.load(std::memory_order_relaxed)) return false;
  if (!engine().descriptor_loss().descriptors_are_ours()) return false;
  if (Turn* const next = backlogs_.next_for_room()) [[unlikely]]
    next->stream.reading_turn().want();
  // A round: those that have had word since the last, in the order in which they had it, and then those in line; none
  // of them twice. So what a peer sends by several connections one after the other is delivered in that order, as
  // programs know it from devices (dapltest).
  const bool in_line = std::exchange(line_is_next_, false);
  const bool asks = !in_line && std::exchange(some_read_on_, false) && ready_.empty() && streams_.size() > 1;
  if (asks) fetch_ready();
  begin_round();
  bool progress = false;
  if (!in_line && !ready_.empty()) {
    progress = look_at_all();
    if (turns_.left() == 0) return progress;
    // The program sees what has come before those in line go on, which takes longer.
    line_is_next_ = true;
    somebody_waits_.store(true);
    engine().wake_if_armed();
    return true;
  }
  progress |= run_turns();
  if (in_line || streams_.empty()) return progress;
  ++looks_;
  if (vain_looks_ >= kVainLooksMax && looks_ % kLookSeldom != 0) return progress;
  return look(asks) || progress;
}

bool Fabric::look(bool has_asked) {
  const unsigned seldom = busy_.masked() ? kLooksPerLookAtOthers : kLooksPerLookAtAll;
  bool progress = false;
  // Something has come for the busy one, which is alone: before it is looked at again its other events have their turn.
  // That is done with the next look, while an answer to what has come is perhaps under way already.
  const bool others_first = std::exchange(owes_others_, false);
  if (others_first) progress = look_at_all();
  if (TcpStream* const busy = busy_.stream(); busy && !busy->reading_turn().wanted() && busy->receive()) {
    progress = true;
    owes_others_ = streams_.size() == 1;
    busy_.read_directly();
  }
  if (!progress && !others_first && !has_asked && (!busy_.stream() || looks_ % seldom == 0)) progress = look_at_all();
  vain_looks_ = progress ? 0 : vain_looks_ + 1;
  return progress;
}

void Fabric::fetch_ready() {
  if (!ready_.fetch()) engine().descriptor_loss().note();
}

// Of others that only have something to send it is not told apart: they are few, and their turn is short.
bool Fabric::others_than(const Turn& its, bool look) {
  if (turns_.left() > 0) return true;
  if (somebody_waits_.load(std::memory_order_relaxed) && turns_.others_than(its)) return true;
  if (look && !ready_.any_of_others(its.stream) && streams_.size() > 1) fetch_ready();  // of itself there may be word
  return ready_.any_of_others(its.stream);
}

bool Fabric::others_come_before(const Turn& its) {
  if (streams_.size() <= 1) return false;
  if (!ready_.any_of_others(its.stream)) fetch_ready();
  return ready_.others_before(its.stream);
}

bool Fabric::look_at_all() {
  if (ready_.empty()) fetch_ready();
  bool progress = false;
  // Those who are told may find more, which is for the next pass.
  for (std::size_t i = 0; i < budget::kReadyPerPass && !ready_.empty(); ++i) {
    const auto [stream, events] = ready_.take_first();
    if (!stream || !streams_.contains(stream)) continue;  // it may be a set of the program's by now
    if ((events & EPOLLIN) != 0) busy_.arrived(*stream, streams_.size() == 1);
    stream->ready(events);
    progress = true;
  }
  return progress;
}

void Fabric::ready(std::uint32_t) {
  if (streams_.size() > 1 && (turns_.left() > 0 || somebody_waits_.load(std::memory_order_relaxed))) {
    some_read_on_ = true;  // the next round asks
    return;
  }
  if (look_at_all()) vain_looks_ = 0;
}

os::Nanoseconds Fabric::silence_interval() const {
  return adapter_.config().silence_ns / 4;
}

// At a share of the connections each time, so that each is looked at once in an interval, and however many there are no
// connection waits for the looks at all of them.
void Fabric::look_for_silence() {
  if (streams_.empty()) return;
  const std::size_t shares = (streams_.size() - 1) / budget::kSilenceLooksPerTurn + 1;
  engine().set_timer(silence_timer_, os::now_ns() + silence_interval() / static_cast<os::Nanoseconds>(shares));
  if (unasked_.empty()) unasked_.assign(streams_.begin(), streams_.end());
  for (std::size_t looks = 0; looks < budget::kSilenceLooksPerTurn && !unasked_.empty();) {
    TcpStream* const stream = unasked_.back();
    unasked_.pop_back();
    // It may have ended since, and another one may be in its place.
    if (!streams_.contains(stream)) continue;
    stream->look_for_silence(adapter_.config().silence_ns);
    ++looks;
  }
}

}  // namespace anydat::nic::soft::iwarp
