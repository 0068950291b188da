// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/stream.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"

namespace anydat::nic::soft::shm {

ShmStream::ShmStream(Fabric& fabric, SoftQueuePair& queue_pair) : fabric_(fabric), queue_pair_(queue_pair) {
  name_ = fabric.add(*this);  // last: a stream that can be found is whole
  rdma_.slot().share(name_);
}

ShmStream::~ShmStream() {
  fabric_.remove(*this);
  if (link_) link_->remove(*this);
}

void ShmStream::attach(std::shared_ptr<Link> link) {
  responder_.reserve(queue_pair_.reads_in());
  link->add(*this);
  link_ = std::move(link);
  sender_.set_link(link_.get());
  rdma_.set_link(link_.get());
}

void ShmStream::detach() {
  link_->remove(*this);
  link_.reset();
  sender_.set_link(nullptr);
  rdma_.set_link(nullptr);
}

void ShmStream::set_remote(std::uint32_t remote, const RdmaTerms& terms) {
  remote_ = remote;
  sender_.set_remote(remote);
  rdma_.set_remote(remote, terms);
  queue_pair_.sends().set_peer_takes(terms.takes);
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
  disconnection_.or_break([&] { sane = arrived_in(state, connected, view); });
  return sane;
}

bool ShmStream::arrived_in(ConnectionState state, bool connected, const CellView& view) {
  switch (view.kind) {
    case CellKind::send:
    case CellKind::send_invalidate:
      return connected && receiver_.message_arrived(view);
    case CellKind::announce:
      return connected && receiver_.announce_arrived(view);
    case CellKind::clear_to_send:
      return connected && rendezvous_sender_.clear_to_send_arrived(view.aux);
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
      return connected && sender_.credit_arrived(view.aux);
    case CellKind::ready:
      if (state != ConnectionState::accepting) return false;
      queue_pair_.connection().establishment().done({});
      return true;
    case CellKind::reject:
      return state == ConnectionState::connecting && negotiation_.reject_arrived(view);
    case CellKind::redirect:
      return state == ConnectionState::connecting && negotiation_.redirect_arrived(view);
    case CellKind::close:
      return disconnection_.arrived(view);
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
      if (!queue_pair_.outcomes().place_read(bytes, view.length))
        disconnection_.violated("it sent bytes that nobody asked for");
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
    disconnection_.or_break([this] { receiver_.deliver_backlog(); });
  }
}

bool ShmStream::take_turn() {
  rdma_.ask_for_mapping();
  bool moved = false;
  disconnection_.or_break([&] {
    if (!closed_) rdma_.ask_for_pages();
    pages_.bring();
    if (!closed_) responder_.bring();
    if (!closed_) rendezvous_receiver_.place_held();
    if (!closed_) writes_.go_on();
    if (!closed_) rendezvous_receiver_.clear_pieces();
    moved = !closed_ && rendezvous_receiver_.pull_some();
    moved |= !closed_ && rendezvous_sender_.push_some();
    moved |= !closed_ && rendezvous_sender_.send_pieces();
    moved |= !closed_ && responder_.serve();
  });
  moved |= !closed_ && queue_pair_.sends().pump();
  return moved;
}

// A region went away: whatever lies in it can go no further (LMR-FREE-8).
bool ShmStream::region_removed() {
  if (writes_.holds() && !closed_) disconnection_.or_break([this] { writes_.go_on(); });
  rendezvous_sender_.region_removed();
  return rendezvous_receiver_.region_removed();
}

bool ShmStream::lets_go_of(std::uint32_t key) {
  return link_->hazards().lets_go_of(key);
}

}  // namespace anydat::nic::soft::shm
