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

bool Fabric::line_up(Turn& turn) {
  base::Guard guard(turns_lock_);
  if (turn.place.listed()) return false;
  turns_.push_back(turn);
  return true;
}

void Fabric::come_back(Turn& turn) {
  line_up(turn);
  somebody_waits_.store(true);
  engine().nudge();
}

void Fabric::come_back_in_time(Turn& turn) {
  if (!line_up(turn)) return;
  somebody_waits_.store(true);
  engine().want_pass();
}

void Fabric::forget(Turn& turn) {
  base::Guard guard(turns_lock_);
  turns_.remove(turn);
}

bool Fabric::run_turns() {
  if (!somebody_waits_.load(std::memory_order_relaxed)) return false;
  somebody_waits_.exchange(false);
  {
    base::Guard guard(turns_lock_);
    turns_left_ = turns_.size();
  }
  bool progress = false;
  while (turns_left_ > 0) {
    --turns_left_;
    Turn* turn = nullptr;
    {
      base::Guard guard(turns_lock_);
      turn = turns_.pop_front();
    }
    if (!turn) break;
    progress |= turn->stream.turn();
  }
  turns_left_ = 0;
  return progress;
}

bool Fabric::poll() {
  passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (streams_.empty() && !somebody_waits_.load(std::memory_order_relaxed)) return false;
  if (!engine().descriptors_are_ours()) return false;
  // Those that had word while another had its turn come before that one has its next: what a peer sends by several
  // connections one after the other arrives in nearly that order, as programs know it from devices (dapltest).
  const bool waited = !ready_.empty();
  bool progress = waited && look_at_all();
  progress |= run_turns();
  if (waited || streams_.empty()) return progress;
  ++looks_;
  if (vain_looks_ >= kVainLooksMax && looks_ % kLookSeldom != 0) return progress;
  return look() || progress;
}

bool Fabric::look() {
  const unsigned seldom = hushed_ ? kLooksPerLookAtOthers : kLooksPerLookAtAll;
  bool progress = false;
  // Something has come for the hot one: before it is looked at again all others have their turn. That is done with the
  // next look, while an answer to what has come is perhaps under way already.
  const bool others_first = std::exchange(owes_others_, false);
  if (others_first) progress = look_at_all();
  if (hot_ && !hot_->wants_turn() && hot_->receive()) {
    progress = owes_others_ = true;
    if (++streak_ == kStreak) hush(true);
  }
  if (!progress && !others_first && (!hot_ || looks_ % seldom == 0)) progress = look_at_all();
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

void Fabric::fetch_ready() {
  const int count = os::uncancelled::epoll_wait(epoll_fd_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  if (count < 0 && !epoll_fd_.is_ours()) engine().note_loss();
  ready_ = std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
}

// Of others that only have something to send it is not told apart: they are few, and their turn is short.
bool Fabric::others_wait(const Turn& its, bool look) {
  if (turns_left_ > 0) return true;
  if (somebody_waits_.load(std::memory_order_relaxed)) {
    base::Guard guard(turns_lock_);
    if (turns_.size() > (its.place.listed() ? 1u : 0u)) return true;
  }
  if (ready_.empty() && look) fetch_ready();
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
    partings_.add(std::make_unique<Farewell>(*this, std::move(socket), std::move(rest), stage, source));
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
