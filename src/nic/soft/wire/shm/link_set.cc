// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link_set.h"

#include <algorithm>

#include "nic/soft/wire/shm/link.h"

namespace anydat::nic::soft::shm {

namespace {

// Looking straight at so many costs about as much as taking and releasing the engine.
constexpr std::size_t kHotMax = 8;
// Looks by time without anything, after which a link cools down, and then is cold.
constexpr std::uint64_t kTurnsToCool = 20;
constexpr std::uint64_t kTurnsToBeCold = 2;
constexpr std::size_t kShare = 64;

void make_room(std::vector<Link*>& links, std::size_t count) {
  if (links.capacity() < count) links.reserve(2 * count);
}

}  // namespace

LinkSet::LinkSet() : marks_(MarkTable::create(fd_)) {}

void LinkSet::add(Link& link) {
  for (std::vector<Link*>* links : {&all_, &hot_, &warm_, &served_}) make_room(*links, all_.size() + 1);
  LinkPlace& place = link.place();
  if (free_slots_.empty() && slots_.size() < kMarkSlots) {
    free_slots_.reserve(slots_.size() + 1);
    slots_.push_back(nullptr);
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    mark_words_ = MarkTable::words_for(static_cast<std::uint32_t>(slots_.size()));
  }
  if (!free_slots_.empty()) {
    place.slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[place.slot] = &link;
  }
  place.index = all_.size();
  all_.push_back(&link);
  link.inbound().header().slot.store(place.slot);
  place.active = turn_;
  heat(link);
}

void LinkSet::remove(Link& link) {
  LinkPlace& place = link.place();
  if (place.index >= all_.size() || all_[place.index] != &link) return;
  forget(link);
  if (place.slot < kMarkSlots) {
    slots_[place.slot] = nullptr;
    free_slots_.push_back(place.slot);
  }
  all_.back()->place().index = place.index;
  std::swap(all_[place.index], all_.back());
  all_.pop_back();
}

void LinkSet::forget(Link& link) {
  LinkPlace& place = link.place();
  if (place.interest == Interest::hot) std::erase(hot_, &link);
  if (place.interest == Interest::warm) std::erase(warm_, &link);
  place.interest = Interest::none;
}

// No thread that relies on the bell is left without one: while all threads sleep, or are about to, every peer rings.
void LinkSet::set_attention(Link& link) {
  const LinkPlace& place = link.place();
  const bool rings = armed_ || place.interest == Interest::none || place.cooling;
  const Attention attention = rings                             ? Attention::bell
                              : place.interest == Interest::hot ? Attention::looks
                                                                : Attention::mark;
  link.inbound().header().attention.store(static_cast<std::uint32_t>(attention));
}

// Without a slot its peer cannot mark it, and with something to do it is looked at in each pass: it is hot then.
void LinkSet::heat(Link& link) {
  LinkPlace& place = link.place();
  const bool hot =
      place.interest == Interest::hot || hot_.size() < kHotMax || link.something_waits() || place.slot >= kMarkSlots;
  const Interest interest = hot ? Interest::hot : Interest::warm;
  if (place.interest == interest && !place.cooling) return;
  if (place.interest != interest) {
    forget(link);
    place.interest = interest;
    (hot ? hot_ : warm_).push_back(&link);
  }
  place.cooling = false;
  set_attention(link);
}

void LinkSet::cool(Link& link) {
  LinkPlace& place = link.place();
  if (place.interest == Interest::hot) {
    forget(link);
    place.interest = Interest::warm;
    warm_.push_back(&link);
  }
  place.cooling = true;
  place.active = turn_;
  set_attention(link);
}

void LinkSet::rung(Link& link) {
  if (link.dead()) return;
  // Whether there is anything or not: the bell is spent, so its peer will not ring again by itself.
  link.place().active = turn_;
  heat(link);
  look_next(link);
}

// Mostly there is nothing, and that is found out with as little as possible: it is what a message waits for that comes
// just then.
bool LinkSet::poll() {
  for (Link* const& link : hot_) {
    if (!link->quiet()) return serve_hot(static_cast<std::size_t>(&link - hot_.data()));
  }
  if (!marks_.any(mark_words_)) return false;
  gather_marked();
  return serve_gathered();
}

// The first of the hot ones that is not quiet, and whatever else is there.
[[gnu::noinline]] bool LinkSet::serve_hot(std::size_t first) {
  const bool marked = marks_.any(mark_words_);
  if (marked || first + 1 < hot_.size()) return serve_with_others(first, marked);
  return serve(*hot_[first]);
}

[[gnu::noinline]] bool LinkSet::serve_with_others(std::size_t first, bool marked) {
  std::size_t next = first + 1;
  while (next < hot_.size() && hot_[next]->quiet()) ++next;
  if (!marked && next == hot_.size()) return serve(*hot_[first]);
  gather(*hot_[first]);
  for (; next < hot_.size(); ++next) gather(*hot_[next]);
  if (marked) gather_marked();
  return serve_gathered();
}

inline bool LinkSet::serve(Link& link) {
  const bool found = link.poll();
  if (found) link.place().active = turn_;
  return found;
}

// The next pass sees what is there, and who else has something.
void LinkSet::look_next(Link& link) {
  if (link.place().interest != Interest::hot && !link.quiet()) wake(link.place().slot);
}

void LinkSet::gather(Link& link) {
  LinkPlace& place = link.place();
  if (place.served || link.quiet()) return;
  place.served = true;
  served_.push_back(&link);
}

void LinkSet::gather_marked() {
  marks_.take(mark_words_, [&](std::uint32_t slot) {
    if (slot < slots_.size() && slots_[slot]) gather(*slots_[slot]);
  });
}

// The first message of each before the second of any, and before all that takes longer; what is behind it goes by in
// rows, which are much cheaper.
[[gnu::noinline]] bool LinkSet::serve_gathered() {
  // Runs also if something is thrown: a link that still counted as served would be left out from then on.
  struct End {
    ~End() {
      for (Link* const link : links) {
        link->place().served = false;
        link->end_turn();
      }
      links.clear();
    }
    std::vector<Link*>& links;
  } const end{served_};
  for (std::size_t i = 0; i < served_.size(); ++i) {
    served_[i]->begin_turn();
    served_[i]->receiver().take_first_message();
  }
  bool progress = false;
  // Each may end itself or others. It is out of the set then, and still there until a timer has its turn.
  for (std::size_t i = 0; i < served_.size(); ++i) progress |= served_[i]->dead() || serve_rest(*served_[i]);
  return progress;
}

bool LinkSet::serve_rest(Link& link) {
  const bool found = link.go_through_turn();
  if (link.dead()) return found;
  if (found) link.place().active = turn_;
  if (found || link.something_waits()) heat(link);
  look_next(link);
  return found;
}

bool LinkSet::look_by_time() {
  ++turn_;
  for (Link* const link : warm_) gather(*link);
  for (std::size_t i = std::min(kShare, all_.size()); i > 0; --i) {
    if (share_ >= all_.size()) share_ = 0;
    gather(*all_[share_++]);
  }
  const bool progress = !served_.empty() && serve_gathered();
  let_cool();
  return progress;
}

void LinkSet::let_cool() {
  for (std::size_t i = hot_.size(); i-- > 0 && hot_.size() > 1;) {
    Link& link = *hot_[i];
    const bool idle = turn_ - link.place().active > kTurnsToCool;
    if (idle && !link.something_waits() && link.place().slot < kMarkSlots) cool(link);
  }
  for (std::size_t i = warm_.size(); i-- > 0;) {
    Link& link = *warm_[i];
    const LinkPlace& place = link.place();
    if (place.cooling && (armed_ || turn_ - place.active >= kTurnsToBeCold)) {
      forget(link);
    } else if (!place.cooling && turn_ - place.active > kTurnsToCool) {
      cool(link);
    }
  }
}

void LinkSet::arm() {
  armed_ = true;
  for (Link* link : hot_) {
    set_attention(*link);
    link->want_room_again();
  }
  for (Link* link : warm_) cool(*link);
}

void LinkSet::disarm() {
  armed_ = false;
  for (Link* link : hot_) set_attention(*link);
}

}  // namespace anydat::nic::soft::shm
