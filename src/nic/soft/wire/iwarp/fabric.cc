// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/fabric.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/caller.h"
#include "nic/soft/wire/iwarp/inquiry.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "nic/soft/wire/iwarp/transmitter.h"
#include "os/uncancelled.h"

namespace anydat::nic::soft::iwarp {

namespace {

// A look at a socket is a system call. While nothing comes, other sources are not slowed down by one each time.
constexpr unsigned kVainLooksMax = 20'000;
constexpr unsigned kLookSeldom = 64;
constexpr unsigned kLooksPerLookAtAll = 8;
constexpr unsigned kLooksPerLookAtOthers = 64;
constexpr unsigned kStreak = 32;
constexpr unsigned kInARow = 8;
constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
}  // namespace

Fabric::Fabric(SoftAdapter& adapter)
    : adapter_(adapter),
      staging_(new std::byte[kStagingBytes]),
      parked_([this] { engine().nudge(); }),
      address_watch_(adapter.engine()),
      silence_timer_([this] { look_for_silence(); }),
      sweep_timer_([this] { sweep(); }) {}

Fabric::~Fabric() = default;

Status Fabric::start() {
  epoll_fd_ = base::UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll_fd_ || !engine().watch(epoll_fd_.get(), EPOLLIN, *this)) return Status::no_memory;
  engine().add_source(*this);
  return Status::ok;
}

void Fabric::shut_down() {
  callers_.clear();
  inquiries_.clear();
  try {
    partings_.wait();
  } catch (const std::bad_alloc&) {
    // Peers find their connections cut.
  }
  partings_.clear();
  sweep();
  engine().cancel_timer(sweep_timer_);
  engine().cancel_timer(silence_timer_);
  if (!epoll_fd_) return;
  engine().remove_source(*this);
  engine().unwatch(epoll_fd_.get(), *this);
}

void Fabric::descriptors_lost() {
  const std::vector<TcpStream*> streams(streams_.begin(), streams_.end());
  for (TcpStream* stream : streams) {
    if (streams_.contains(stream)) stream->descriptors_lost();
  }
  callers_.clear();
  partings_.clear();
}

Engine& Fabric::engine() const {
  return adapter_.engine();
}

ListenerEvents* Fabric::listener(ConnQual qual) const {
  const auto found = listeners_.find(qual);
  return found != listeners_.end() ? found->second : nullptr;
}

std::vector<std::byte> Fabric::take_spare() {
  return spares_ > 0 ? std::move(spare_[--spares_]) : std::vector<std::byte>{};
}

void Fabric::give_spare(std::vector<std::byte> memory) noexcept {
  if (memory.capacity() == 0 || spares_ == spare_.size()) return;
  memory.clear();
  spare_[spares_++] = std::move(memory);
}

// ---- whose turn it is

bool Fabric::watch(TcpStream& stream, int fd) {
  try {
    streams_.insert(&stream);
  } catch (const std::bad_alloc&) {
    return false;
  }
  epoll_event event{};
  event.events = kEvents;
  event.data.ptr = &stream;
  if (epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    streams_.erase(&stream);
    return false;
  }
  vain_looks_ = 0;
  if (streams_.size() == 1 && adapter_.config().silence_ns != base::kForever) {
    engine().set_timer(silence_timer_, base::now_ns() + silence_interval());
  }
  return true;
}

void Fabric::unwatch(TcpStream& stream, int fd) {
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
  streams_.erase(&stream);
  if (last_ == &stream) last_ = nullptr;
  if (hot_ == &stream) {
    hot_ = nullptr;
    hushed_ = false;
  }
  for (epoll_event& event : ready_) {
    if (event.data.ptr == &stream) event.data.ptr = nullptr;
  }
}

void Fabric::come_back(Turn& turn) {
  turns_.add(turn);
  somebody_waits_.store(true);
  engine().nudge();
}

void Fabric::come_back_to_read(Turn& turn) {
  forget(turn);
  some_read_on_ = true;
  come_back(turn);
}

// The round stops here, and goes on with this one when those that have had word have had a turn.
void Fabric::keep_turn(Turn& turn) {
  turns_.keep(turn);
  stopped_ = true;
  somebody_waits_.store(true);
  engine().nudge();
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
  if (Turn* const next = parked_.next_for_room()) [[unlikely]]
    next->stream.read_on();
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
    engine().nudge();
    return true;
  }
  progress |= run_turns();
  if (in_line || streams_.empty()) return progress;
  ++looks_;
  if (vain_looks_ >= kVainLooksMax && looks_ % kLookSeldom != 0) return progress;
  return look(asks) || progress;
}

bool Fabric::look(bool has_asked) {
  const unsigned seldom = hushed_ ? kLooksPerLookAtOthers : kLooksPerLookAtAll;
  bool progress = false;
  // Something has come for the hot one, which is alone: before it is looked at again its other events have their turn.
  // That is done with the next look, while an answer to what has come is perhaps under way already.
  const bool others_first = std::exchange(owes_others_, false);
  if (others_first) progress = look_at_all();
  if (hot_ && !hot_->wants_turn() && hot_->receive()) {
    progress = true;
    owes_others_ = streams_.size() == 1;
    if (++streak_ == kStreak) hush(true);
  }
  if (!progress && !others_first && !has_asked && (!hot_ || looks_ % seldom == 0)) progress = look_at_all();
  vain_looks_ = progress ? 0 : vain_looks_ + 1;
  return progress;
}

// Something has come for this one. If it is the only one, or nothing has come for others in a while, its socket is
// looked at directly from now on. Where several take turns epoll is asked, which tells whose word came first.
void Fabric::heat(TcpStream& stream) {
  if (hot_ == &stream) return;
  hush(false);
  hot_ = nullptr;
  if (std::exchange(last_, &stream) != &stream) in_a_row_ = 0;
  if (streams_.size() > 1 && ++in_a_row_ < kInARow) return;
  in_a_row_ = 0;
  hot_ = &stream;
  streak_ = 0;
}

// As long as somebody looks at a socket all the time, word of each arrival is of no use, and costs the sender's system
// call half a microsecond on this host.
void Fabric::hush(bool on) {
  streak_ = 0;
  if (hushed_ == on || !hot_) return;
  hushed_ = on;
  epoll_event event{};
  event.events = on ? kEvents & ~static_cast<std::uint32_t>(EPOLLIN) : kEvents;
  event.data.ptr = hot_;
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_MOD, hot_->socket(), &event);
}

// Behind those that have been named and not been told yet.
void Fabric::fetch_ready() {
  std::copy(ready_.begin(), ready_.end(), events_.begin());
  const std::size_t known = ready_.size();
  const std::span<epoll_event> room = std::span(events_).subspan(known);
  const int count =
      room.empty() ? 0 : os::uncancelled::epoll_wait(epoll_fd_.get(), room.data(), static_cast<int>(room.size()), 0);
  if (count < 0 && !epoll_fd_.is_ours()) engine().descriptor_loss().note();
  std::size_t all = known;
  for (const epoll_event& event : room.first(static_cast<std::size_t>(std::max(count, 0)))) {
    const auto end = events_.begin() + static_cast<std::ptrdiff_t>(known);
    const auto same =
        std::find_if(events_.begin(), end, [&](const epoll_event& one) { return one.data.ptr == event.data.ptr; });
    if (same != end) {
      same->events |= event.events;
    } else {
      events_[all++] = event;
    }
  }
  ready_ = std::span(events_).first(all);
}

// Of others that only have something to send it is not told apart: they are few, and their turn is short.
bool Fabric::others_than(const Turn& its, bool look) {
  if (turns_.left() > 0) return true;
  if (somebody_waits_.load(std::memory_order_relaxed) && turns_.others_than(its)) return true;
  if (look && !told_of_others(its) && streams_.size() > 1) fetch_ready();  // of itself there may be word
  return told_of_others(its);
}

bool Fabric::others_come_before(const Turn& its) {
  if (streams_.size() <= 1) return false;
  if (!told_of_others(its)) fetch_ready();
  for (const epoll_event& event : ready_) {
    if (event.data.ptr == &its.stream && (event.events & EPOLLIN) != 0) return false;
    if (event.data.ptr && event.data.ptr != &its.stream) return true;
  }
  return false;
}

bool Fabric::told_of_others(const Turn& its) const {
  return std::any_of(ready_.begin(), ready_.end(),
                     [&](const epoll_event& event) { return event.data.ptr && event.data.ptr != &its.stream; });
}

bool Fabric::look_at_all() {
  if (ready_.empty()) fetch_ready();
  bool progress = false;
  // Those who are told may find more, which is for the next pass.
  for (std::size_t i = 0; i < events_.size() && !ready_.empty(); ++i) {
    const epoll_event event = ready_.front();
    ready_ = ready_.subspan(1);
    auto* stream = static_cast<TcpStream*>(event.data.ptr);
    if (!stream || !streams_.contains(stream)) continue;  // it may be a set of the program's by now
    if ((event.events & EPOLLIN) != 0) heat(*stream);
    stream->ready(event.events);
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

base::Nanoseconds Fabric::silence_interval() const {
  return adapter_.config().silence_ns / 4;
}

void Fabric::look_for_silence() {
  if (streams_.empty()) return;
  engine().set_timer(silence_timer_, base::now_ns() + silence_interval());
  const std::vector<TcpStream*> streams(streams_.begin(), streams_.end());
  for (TcpStream* stream : streams) {
    if (streams_.contains(stream)) stream->look_for_silence(adapter_.config().silence_ns);
  }
}

// ---- set-ups and ends

void Fabric::called(base::UniqueFd socket, const Address& source, ConnQual qual) {
  if (!callers_.add(std::make_unique<Caller>(*this, std::move(socket), source, qual)).begin()) callers_.drop_newest();
}

void Fabric::deliver(std::unique_ptr<TcpRequest> given, ListenerEvents& to) {
  std::unique_ptr<ConnectionRequest> request = std::move(given);
  if (!to.on_request(request) && request) static_cast<TcpRequest&>(*request).refuse();
}

void Fabric::part(base::UniqueFd socket, Transmitter rest, Stranger::Stage stage, const Address& source) {
  try {
    auto farewell = std::make_unique<Farewell>(*this, std::move(socket), std::move(rest), stage, source);
    if (stage == Stranger::Stage::parting) adapter_.strangers().one_parts();
    partings_.add(std::move(farewell));
  } catch (const std::bad_alloc&) {
    // The peer finds the connection cut.
  }
}

void Fabric::finished(Caller& caller) {
  if (callers_.finished(caller)) engine().set_timer(sweep_timer_, base::now_ns());
}

Fabric::Begun Fabric::inquire(TcpStream& stream, const Address& remote, ConnQual qual) {
  Begun begun;
  Inquiry& made = inquiries_.add(std::make_unique<Inquiry>(*this, stream, qual));
  try {
    begun.status = made.begin(remote, begun.local);
  } catch (const std::bad_alloc&) {
    inquiries_.drop_newest();
    throw;
  }
  if (begun.status == Status::ok) {
    begun.inquiry = &made;
  } else {
    inquiries_.drop_newest();
  }
  return begun;
}

void Fabric::finished(Inquiry& inquiry) {
  if (inquiries_.finished(inquiry)) engine().set_timer(sweep_timer_, base::now_ns());
}

void Fabric::finished(Farewell& farewell) {
  if (partings_.finished(farewell)) engine().set_timer(sweep_timer_, base::now_ns());
}

void Fabric::sweep() {
  callers_.sweep();
  inquiries_.sweep();
  partings_.sweep();
}

}  // namespace anydat::nic::soft::iwarp
