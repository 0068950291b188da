// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/stream.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/wire/shm/fabric.h"

namespace anydat::nic::soft::shm {

namespace {

// How long a peer that is in the middle of writing is given before the next look at it, at first and at last. It writes
// for microseconds, unless it has been stopped.
constexpr base::Nanoseconds kLetGoDelayMin = 20'000;
constexpr base::Nanoseconds kLetGoDelayMax = 50'000'000;

}  // namespace

ShmStream::ShmStream(Fabric& fabric, SoftQueuePair& queue_pair)
    : fabric_(fabric),
      queue_pair_(queue_pair),
      sends_(queue_pair.sends()),
      initiator_(queue_pair.initiator()),
      engine_(fabric.engine()),
      resident_pages_(fabric.adapter().resident_pages()),
      request_pages_(fabric.adapter(), *this),
      arrival_pages_(fabric.adapter(), *this),
      let_go_timer_([this] { let_go_again(); }) {
  name_ = fabric.add(*this);  // last: whoever finds it finds all of it
  rdma_.slot().share(name_);
}

ShmStream::~ShmStream() {
  fabric_.engine().cancel_timer(let_go_timer_);
  fabric_.remove(*this);
  if (link_) link_->remove(*this);
}

void ShmStream::pages_brought(const OwnPages& pages, const OwnPages::Brought& news) {
  if (closed_) return;
  if (!news.there) or_break([&] { fail_pages(pages, news); });
  go_on_with_pages();
}

void ShmStream::go_on_with_pages() {
  // Also where the link has gone since, and has no turns any more.
  if (!closed_) or_break([this] { rendezvous_receiver_.place_held(); });
  if (!closed_ && writes_.holds()) or_break([this] { writes_.go_on(); });
  // Others may have wanted memory meanwhile.
  if (!closed_) link_->come_back(*this);
}

void ShmStream::fail_pages(const OwnPages& pages, const OwnPages::Brought& news) {
  if (&pages == &request_pages_) {
    fail_request(news);
  } else {
    fail_arriving(news.address);
  }
}

// DTO-40: the request that needs memory there.
void ShmStream::fail_request(const OwnPages::Brought& news) {
  if (!news.to_write && rendezvous_sender_.fail(news.address)) return;
  if (sends_.fail_blocked(news.address, news.to_write, WorkStatus::local_protection)) return;
  rdma_.not_had(news.address);
}

// The same of the message, or the Write, that is to come there.
void ShmStream::fail_arriving(std::uint64_t address) {
  if (writes_.fail(address)) return;
  rendezvous_receiver_.fail(address);
}

void ShmStream::attach(std::shared_ptr<Link> link) {
  responder_.reserve(queue_pair_.reads_in());
  link->add(*this);
  link_ = std::move(link);
  rdma_.set_link(link_.get());
}

void ShmStream::detach() {
  link_->remove(*this);
  link_.reset();
  rdma_.set_link(nullptr);
}

void ShmStream::set_remote(std::uint32_t remote, const RdmaTerms& terms) {
  remote_ = remote;
  rdma_.set_remote(remote, terms);
  sends_.set_peer_takes(terms.takes);
}

bool ShmStream::arrived(const CellView& view) {
  if (closed_) return true;
  if (writes_.keeps_back(view)) [[unlikely]] {
    writes_.hold(view);
    return true;
  }
  const ConnectionState state = queue_pair_.state();
  const bool connected = this->connected();
  if (!connected) [[unlikely]]
    return arrived_in(state, connected, view);
  bool sane = true;
  or_break([&] { sane = arrived_in(state, connected, view); });
  return sane;
}

bool ShmStream::arrived_in(ConnectionState state, bool connected, const CellView& view) {
  switch (view.kind) {
    case CellKind::send:
    case CellKind::send_invalidate:
      return connected && receiver_.message_arrived(view);
    case CellKind::announce:
      return connected && receiver_.announce_arrived(view);
    case CellKind::grant:
      return connected && rendezvous_sender_.grant_arrived(view.aux);
    case CellKind::push:
      return connected && rendezvous_sender_.push_arrived(view);
    case CellKind::pulled:
      return connected && rendezvous_sender_.pulled_arrived(view.aux);
    case CellKind::pushed:
      return connected && rendezvous_receiver_.pushed_arrived(view.aux);
    case CellKind::cannot_push:
      return connected && rendezvous_receiver_.cannot_push_arrived(view.aux);
    case CellKind::get:
      return connected && responder_.read_arrived(view);
    case CellKind::fault_in:
      return connected && responder_.fault_in_arrived(view);
    case CellKind::faulted_in:
      return connected && rdma_.faulted_in_arrived(view.aux);
    case CellKind::write:
      return connected && writes_.short_arrived(view);
    case CellKind::done:
      return connected && rdma_.done_arrived(view.aux);
    case CellKind::immediate:
      return connected && receiver_.immediate_arrived(view);
    case CellKind::atomic:
      return connected && responder_.atomic_arrived(view);
    case CellKind::atomic_done:
      return connected && rdma_.atomic_done_arrived(view);
    case CellKind::credit:
      return connected && credit_arrived(view.aux);
    case CellKind::ready:
      if (state != ConnectionState::accepting) return false;
      queue_pair_.connection().establishment().done({});
      return true;
    case CellKind::reject:
      return state == ConnectionState::connecting && negotiation_.reject_arrived(view);
    case CellKind::redirect:
      return state == ConnectionState::connecting && negotiation_.redirect_arrived(view);
    case CellKind::close:
      if (view.aux > static_cast<std::uint32_t>(CloseReason::request_failed)) return false;
      return close_arrived(view);
    default:
      return false;
  }
}

bool ShmStream::piece_arrived(const CellView& view, const std::byte* bytes) {
  if (closed_) return true;
  if (!connected()) return false;
  switch (view.kind) {
    case CellKind::put:
      writes_.piece_arrived(view, bytes);
      break;
    case CellKind::got:
      if (!initiator_.place_read(bytes, view.length)) violated("it sent bytes that nobody asked for");
      break;
    default:
      rendezvous_receiver_.part_arrived(view.aux, bytes, view.length);
  }
  return true;
}

void ShmStream::resume_receiving() {
  if (rendezvous_receiver_.first_has_come()) {  // it has waited to take a window back
    rendezvous_receiver_.finish();
  } else {
    or_break([this] { receiver_.deliver_parked(); });
  }
}

bool ShmStream::credit_arrived(std::uint32_t cells) {
  if (cells > kWindowCells) return false;
  send_window_.credit(cells);
  sends_.pump();
  return true;
}

// ---- the end

void ShmStream::violated(const char* what) {
  fabric_.adapter().batch().flush();  // what came before is delivered
  link_->warn("a connection with a local peer is cut", what);
  queue_pair_.connection().break_off(WorkStatus::bad_response, CloseReason::abrupt);
}

// A region went away: whatever lies in it can go no further (LMR-FREE-8).
bool ShmStream::memory_changed() {
  if (writes_.holds() && !closed_) or_break([this] { writes_.go_on(); });
  rendezvous_sender_.memory_changed();
  return rendezvous_receiver_.memory_changed();
}

bool ShmStream::lets_go_of(std::uint32_t key) {
  return link_->lets_go_of(key);
}

bool ShmStream::let_go() {
  closed_ = true;
  drop_undelivered();
  rendezvous_sender_.drop();
  responder_.drop();
  if (rendezvous_receiver_.take_back() && past_gate()) return true;
  // A stopped peer may stay stopped for long, and others must not wait for it with us.
  let_go_delay_ = std::clamp(2 * let_go_delay_, kLetGoDelayMin, kLetGoDelayMax);
  fabric_.engine().set_timer(let_go_timer_, base::now_ns() + let_go_delay_);
  return false;
}

bool ShmStream::past_gate() {
  return !gate_ || link_->past_gate(*gate_, *this);
}

// A peer that is stopped in the middle of RDMA has half a second to let go, as where a window is taken back.
void ShmStream::let_go_again() {
  if (!let_go()) {
    if (!past_gate() && base::now_ns() >= gate_patience_) link_->never_lets_go();
    return;
  }
  fabric_.engine().cancel_timer(let_go_timer_);
  queue_pair_.connection().let_go_finished();
}

void ShmStream::close(CloseReason reason) {
  if (closed_) return;
  closed_ = true;
  if (queue_pair_.state() == ConnectionState::connecting) {
    if (link_) {
      link_->send_control(CellKind::cancel, 0, name_);
    } else {
      fabric_.cancel_attempt(*this);
    }
  } else {
    queue_pair_.connection().stop_sending();  // the peer's memory is not used any more when the peer hears of the end
    writes_.tell_done();
    const bool in_order = reason == CloseReason::graceful || reason == CloseReason::abrupt;
    const CloseReason told = in_order ? reason : blame_message(reason);
    const std::size_t bodies = refused_.what == Refused::the_oldest ? 0 : 1;
    link_->send_control(CellKind::close, remote_, static_cast<std::uint32_t>(told),
                        std::as_bytes(std::span(&refused_, bodies)));
    gate_ = link_->fence_at_gate();
    gate_patience_ = base::now_ns() + Link::kStretchPatience;
  }
  drop_undelivered();
}

// If it is one that ends the connection on its own account. One that has completed at its sender leaves nobody to
// blame.
CloseReason ShmStream::blame_message(CloseReason reason) {
  if (receiver_.delivers_completed()) return CloseReason::request_failed;
  if (const auto at_fault = rendezvous_receiver_.at_fault()) {
    refused_ = {Refused::a_message, *at_fault};
  } else if (reason == CloseReason::receiver_not_ready && receiver_.any_parked()) {
    const auto first = receiver_.announced_first();
    if (!first) return CloseReason::request_failed;
    refused_ = {Refused::a_message, *first};
  }
  return reason;
}

bool ShmStream::opens(std::uint32_t key, std::uint64_t at, std::uint64_t length, std::uint32_t right,
                      std::uint64_t& where, std::size_t reads_before_it) {
  const RegionCheck check =
      fabric_.adapter().regions().resolve(key, at, length, queue_pair_.memory().user(), right, where);
  if (check == RegionCheck::ok) return true;
  refuse(right == access::kRemoteWrite ? CloseBody{Refused::a_write, 0} : read_behind(reads_before_it),
         CloseReason::remote_access);
  return false;
}

void ShmStream::refuse(const CloseBody& what, CloseReason reason) {
  refused_ = what;
  queue_pair_.connection().break_off(WorkStatus::flushed, reason);
}

void ShmStream::close_arrived(CloseReason reason, const CloseBody& refused) {
  if (closed_) return;
  const WorkStatus status = Connection::status_of(reason);
  switch (refused.what) {
    case Refused::the_oldest:
      break;
    case Refused::a_write:
      if (initiator_.request_refused(is_write, 0, status)) reason = CloseReason::request_failed;
      break;
    case Refused::a_read:
      if (initiator_.request_refused(is_read, refused.which, status)) reason = CloseReason::request_failed;
      break;
    case Refused::a_message:
      // One that has completed leaves nobody to blame.
      if (const auto number = rendezvous_sender_.number_of(refused.which)) initiator_.request_refused(*number, status);
      reason = CloseReason::request_failed;
      break;
  }
  if (reason != CloseReason::graceful) {
    closed_ = true;
    drop_undelivered();
  } else {
    writes_.drop();  // it has given up the Write that it left undone, and with that what came behind
    sends_.with_posts_ended([this] { rdma_.end_with_peer(); });
  }
  queue_pair_.connection().peer_closed(reason);
}

bool ShmStream::close_arrived(const CellView& view) {
  if (view.aux > static_cast<std::uint32_t>(CloseReason::request_failed)) return false;
  CloseBody body{};
  if (view.length != 0) {
    if (view.length != sizeof body || view.body_room < sizeof body) return false;
    std::memcpy(&body, view.body, sizeof body);
    if (body.what > Refused::a_message) return false;
  }
  close_arrived(static_cast<CloseReason>(view.aux), body);
  return true;
}

void ShmStream::link_lost(WorkStatus why) {
  if (closed_ && queue_pair_.state() == ConnectionState::ending && (rendezvous_receiver_.any() || gate_)) {
    let_go_again();
    return;
  }
  // A peer that closed in order may be gone before we have had buffers for all it sent: that is still to be delivered.
  if (queue_pair_.connection().orderly_end().peer_closing() && holds_messages() && rendezvous_receiver_.all_have_come())
    return;
  closed_ = true;
  drop_undelivered();
  queue_pair_.connection().peer_lost(why);
}

}  // namespace anydat::nic::soft::shm
