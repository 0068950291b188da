// SPDX-License-Identifier: BSD-3-Clause
#include "wire/sim/network.h"

#include <algorithm>
#include <cassert>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft::sim {

Network::Network(std::uint64_t seed, std::size_t payload_max) : random_(seed), payload_max_(payload_max) {}

Network::~Network() {
  assert(std::ranges::all_of(places_, [](const Place& place) { return place.stream == nullptr; }));
}

void Network::join(const End& left, const End& right) {
  const std::size_t first = places_.size();
  places_.push_back({left, nullptr, first + 1});
  places_.push_back({right, nullptr, first});
  for (const std::size_t index : {first, first + 1}) {
    Place& place = places_[index];
    os::Guard guard(place.end.adapter->engine());
    auto stream = std::make_unique<SimStream>(*this, index, *place.end.adapter, *place.end.queue_pair);
    place.stream = stream.get();
    place.end.queue_pair->connection().change_stream(std::move(stream));
  }
}

std::size_t Network::in_flight() const {
  os::Guard guard(lock_);
  return flights_.size();
}

// An orderly end comes behind everything that was sent before it.
bool Network::may_come(const Flight& flight) const {
  if (flight.close != CloseReason::graceful) return true;
  return std::ranges::none_of(flights_, [&](const Flight& other) { return other.to == flight.to && !other.close; });
}

bool Network::step() {
  Flight next;
  {
    os::Guard guard(lock_);
    if (flights_.empty()) return false;
    std::size_t chosen = random_() % flights_.size();
    if (!may_come(flights_[chosen])) {
      std::vector<std::size_t> possible;
      for (std::size_t i = 0; i < flights_.size(); ++i) {
        if (may_come(flights_[i])) possible.push_back(i);
      }
      if (possible.empty()) return false;
      chosen = possible[random_() % possible.size()];
    }
    next = std::move(flights_[chosen]);
    // Their order says nothing, and moving all that come behind takes long where there are many.
    if (chosen + 1 != flights_.size()) flights_[chosen] = std::move(flights_.back());
    flights_.pop_back();
  }
  deliver(next);
  return true;
}

std::size_t Network::deliver_where(const std::function<bool(const iwarp::SegmentHeader&)>& chosen) {
  std::vector<Flight> all;
  {
    os::Guard guard(lock_);
    const auto taken = [&](const Flight& flight) { return !flight.close && chosen(flight.header); };
    std::ranges::copy_if(flights_, std::back_inserter(all), taken);
    std::erase_if(flights_, taken);
  }
  for (const Flight& flight : all) deliver(flight);
  return all.size();
}

void Network::deliver(const Flight& flight) {
  const Place& to = places_[flight.to];
  os::Guard guard(to.end.adapter->engine());
  if (!to.stream) return;
  if (flight.close) {
    to.stream->close_arrived(*flight.close);
  } else {
    to.stream->arrived(flight.bytes);
  }
}

void Network::forge(const SoftQueuePair& to, std::vector<std::byte> bytes) {
  deliver({index_of(to), {}, std::move(bytes)});
}

void Network::cut(const SoftQueuePair& either) {
  const std::size_t one = index_of(either);
  const std::size_t other = places_[one].peer;
  {
    os::Guard guard(lock_);
    std::erase_if(flights_, [&](const Flight& flight) { return flight.to == one || flight.to == other; });
  }
  for (const std::size_t index : {one, other}) {
    const Place& place = places_[index];
    os::Guard guard(place.end.adapter->engine());
    if (place.stream) place.stream->lost();
  }
}

std::optional<iwarp::TerminateCode> Network::refusal(const SoftQueuePair& of) const {
  return places_[index_of(of)].refusal;
}

void Network::send(std::size_t from, iwarp::SegmentHeader header, std::vector<std::byte> message) {
  os::Guard guard(lock_);
  std::size_t at = 0;
  do {
    const std::size_t part = std::min<std::size_t>(message.size() - at, 1 + random_() % payload_max_);
    header.last = at + part == message.size();
    Flight flight{places_[from].peer, header, std::vector<std::byte>(iwarp::kSegmentHeaderBytesMax)};
    flight.bytes.resize(iwarp::write_segment_header(header, flight.bytes));
    const auto begin = message.begin() + static_cast<std::ptrdiff_t>(at);
    flight.bytes.insert(flight.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(part));
    flights_.push_back(std::move(flight));
    at += part;
    header.offset += static_cast<std::uint32_t>(part);
    header.tagged_offset += part;
  } while (at < message.size());
}

void Network::send_close(std::size_t from, CloseReason reason) {
  os::Guard guard(lock_);
  flights_.push_back({places_[from].peer, {}, {}, reason});
}

std::size_t Network::index_of(const SoftQueuePair& queue_pair) const {
  // The last: a queue pair may have been joined before.
  std::size_t index = places_.size();
  while (places_[--index].end.queue_pair != &queue_pair) {
  }
  return index;
}

void Network::gone(std::size_t index) {
  places_[index].stream = nullptr;
}

}  // namespace anydat::nic::soft::sim
