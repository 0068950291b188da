// SPDX-License-Identifier: BSD-3-Clause
// Hostile peers that have a connection, and their RDMA and long messages: what they say of memory, theirs and ours.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "hostile_connection.h"

namespace anydat::test {
namespace {

using Kept = std::vector<RawPeer>;
using shm::CellKind;

// RDMA on memory that is not its own, or with answers to questions that the target has not asked.
void rdma_anything(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const auto key = static_cast<std::uint32_t>(random.chance(2) ? 1 + random.below(8) : odd_number(random));
  const auto piece = static_cast<std::uint32_t>(1 + random.below(shm::kPieceBytesMax));
  const shm::PutBody put{.position = 0,
                         .address = odd_number(random),
                         .length = odd_number(random),
                         .offset = odd_number(random),
                         .key = key};
  const shm::GetBody get{.address = odd_number(random), .length = odd_number(random), .key = key};
  switch (random.below(4)) {
    case 0:
      link.peer.put({.kind = CellKind::put,
                     .flags = shm::kFlagLast,
                     .length = piece,
                     .connection = link.name,
                     .body = bytes_of(put)});
      break;
    case 1:
      for (int i = 0; i < 300; ++i) {
        link.peer.put({.kind = CellKind::get, .connection = link.name, .body = bytes_of(get)});
      }
      break;
    case 2:
      link.peer.put(
          {.kind = CellKind::got, .length = piece, .connection = link.name, .body = bytes_of(shm::PieceBody{})});
      break;
    default:
      link.peer.put({.kind = CellKind::done, .connection = link.name});
  }
  link.peer.ring();
}

// Short Writes without a byte, or with more than may come or have come, and answers to more of them than there are.
void short_writes_that_lie(HostileTarget& target, Random& random, Kept&) {
  const shm::WriteBody write{
      .address = odd_number(random), .key = 1 + static_cast<std::uint32_t>(random.below(8)), .reserved = 0};
  std::vector<std::byte> body = bytes_of(write);
  body.resize(sizeof write + 8 + shm::kShortWriteMax);
  const auto cut_for = [&](CellKind kind, std::uint32_t length, std::uint32_t aux, std::size_t bytes) {
    Connected link = connected(target);
    expect_cut_for(link.peer, {.kind = kind,
                               .flags = shm::kFlagLast,
                               .length = length,
                               .connection = link.name,
                               .aux = aux,
                               .body = {body.begin(), body.begin() + static_cast<std::ptrdiff_t>(bytes)}});
  };
  switch (random.below(4)) {
    case 0:
      return cut_for(CellKind::write, static_cast<std::uint32_t>(random.below(sizeof write + 1)), 0, sizeof write + 8);
    case 1:
      return cut_for(CellKind::write, 200, 0, sizeof write + 8);
    case 2:
      return cut_for(CellKind::write, sizeof write + shm::kShortWriteMax + 1, 0, body.size());
    default:
      return cut_for(CellKind::done, 0, static_cast<std::uint32_t>(odd_number(random)), sizeof write);
  }
}

// Immediate data for a program that takes none, atomic operations that are none, and answers to what the target has
// not asked.
void extended_unasked(HostileTarget& target, Random& random, Kept&) {
  const auto cut_for = [&](CellKind kind, std::vector<std::byte> body) {
    Connected link = connected(target);
    expect_cut_for(link.peer, {.kind = kind, .connection = link.name, .body = std::move(body)});
  };
  const shm::AtomicBody unknown{.address = odd_number(random),
                                .operand = odd_number(random),
                                .compare = odd_number(random),
                                .key = static_cast<std::uint32_t>(odd_number(random)),
                                .operation = static_cast<shm::AtomicOperation>(2 + random.below(100))};
  switch (random.below(4)) {
    case 0:
      return cut_for(CellKind::immediate, bytes_of(shm::ImmediateBody{odd_number(random), 7}));
    case 1:
      return cut_for(CellKind::atomic, bytes_of(unknown));
    case 2:
      return cut_for(CellKind::atomic, random_bytes(random, random.below(sizeof unknown)));
    default:
      return cut_for(CellKind::atomic_done, bytes_of(shm::AtomicDoneBody{odd_number(random)}));
  }
}

// More of them at once than may be, and on whatever memory.
void atomics_on_anything(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const shm::AtomicBody body{
      .address = odd_number(random),
      .operand = odd_number(random),
      .compare = odd_number(random),
      .key = static_cast<std::uint32_t>(random.chance(2) ? 1 + random.below(8) : odd_number(random)),
      .operation = static_cast<shm::AtomicOperation>(random.below(2))};
  for (int i = 0; i < 50; ++i) {
    link.peer.put({.kind = CellKind::atomic, .connection = link.name, .body = bytes_of(body)});
  }
  link.peer.ring();
}

// Asks for memory to be brought in: none, or more than may be asked for, or for a use that there is not.
void fault_in_anything(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  shm::GetBody body{.address = odd_number(random),
                    .length = 1 + random.below(shm::kFaultInBytesMax),
                    .key = static_cast<std::uint32_t>(1 + random.below(8))};
  std::uint32_t right = nic::access::kRemoteRead;
  switch (random.below(3)) {
    case 0:
      body.length = 0;
      break;
    case 1:
      body.length = shm::kFaultInBytesMax + 1 + random.below(std::uint64_t{1} << 40);
      break;
    default:
      right = 0;
  }
  expect_cut_for(link.peer,
                 {.kind = CellKind::fault_in, .connection = link.name, .aux = right, .body = bytes_of(body)});
}

// Says that it uses regions, for ever.
void never_lets_go(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  for (auto& slot : link.peer.outbound().header().rdma_uses) {
    slot.store(1 + random.below(8));
  }
  link.peer.put({.kind = CellKind::send, .connection = link.name, .body = random_bytes(random, 40)});
  link.peer.ring();
}

void piece_outside(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const std::uint64_t position = shm::kBulkBytes - 64 + (random.number() & ~std::uint64_t{shm::kBulkBytes - 1});
  expect_cut_for(link.peer, {.kind = CellKind::piece,
                             .length = static_cast<std::uint32_t>(65 + random.below(8000)),
                             .connection = link.name,
                             .body = bytes_of(position)});
}

void piece_too_long(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const auto length =
      random.chance(2) ? 0 : static_cast<std::uint32_t>(shm::kPieceBytesMax + 1 + random.below(1 << 30));
  expect_cut_for(
      link.peer,
      {.kind = CellKind::piece, .length = length, .connection = link.name, .body = bytes_of(std::uint64_t{0})});
}

std::vector<std::byte> announcement(std::uint64_t length) {
  shm::AnnounceBody body{};
  body.length = length;
  return bytes_of(body);
}

void announce_anything(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  link.peer.put({.kind = CellKind::announce, .connection = link.name, .body = announcement(odd_number(random))});
  link.peer.ring();
}

// Says that the message lies where it does not, or where nothing is, or at more places than there can be.
void announce_memory(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  peer.offer_memory();
  ASSERT_TRUE(peer.shake_hands());
  const std::uint32_t name = peer.connect(target.qualifier(), kOwnName, {});
  ASSERT_NE(name, 0u);
  shm::AnnounceBody body{};
  body.length = 20'000 + random.below(20'000);
  body.can_push = random.below(3);
  body.memory.grant_slot =
      static_cast<std::uint32_t>(random.chance(4) ? random.number() : random.below(shm::kGrantSlots));
  body.memory.grant = random.chance(4) ? 0 : 2 * random.below(100);
  body.memory.span_count = static_cast<std::uint32_t>(random.chance(4) ? odd_number(random) : 1 + random.below(4));
  std::uint64_t left = body.length;
  for (shm::MemoryBody::Span& span : body.memory.spans) {
    span.length = random.chance(8) ? odd_number(random) : random.below(left + 1);
    span.address = random.chance(2) ? odd_number(random) : reinterpret_cast<std::uint64_t>(&body);
    left -= std::min(left, span.length);
  }
  body.memory.spans[3].length += left;
  if (body.memory.grant_slot < shm::kGrantSlots) {
    peer.inbound().header().grants[body.memory.grant_slot].store(body.memory.grant);
  }
  peer.put({.kind = CellKind::announce, .connection = name, .body = bytes_of(body)});
  peer.ring();
  if (const auto answer = peer.take(std::chrono::milliseconds(20)); answer && answer->kind == CellKind::push) {
    // It may write there now; it says so, or does, or changes its mind.
    peer.put({.kind = random.chance(2) ? CellKind::pushed : CellKind::pulled, .connection = name, .aux = answer->aux});
    peer.put({.kind = CellKind::pushed, .connection = name, .aux = answer->aux});
    peer.ring();
  }
  if (body.memory.grant_slot < shm::kGrantSlots) {
    peer.inbound().header().grants[body.memory.grant_slot].store(random.number());
  }
}

void writes_for_ever(HostileTarget& target, Random& random, Kept& kept) {
  std::uint32_t name = 0;
  std::optional<RawPeer> peer = begin_writing_into(target.service(), target.qualifier(), name);
  if (peer && random.chance(2)) {
    peer->put({.kind = CellKind::close, .connection = name});
    peer->ring();
    kept.push_back(std::move(*peer));
  }
}

void answers_about_memory_unasked(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  static constexpr std::array kKinds{CellKind::push, CellKind::pushed, CellKind::pulled, CellKind::clear_to_send};
  shm::MemoryBody body{};
  body.span_count = static_cast<std::uint32_t>(random.below(5));
  expect_cut_for(link.peer, {.kind = kKinds[random.below(kKinds.size())],
                             .connection = link.name,
                             .aux = static_cast<std::uint32_t>(random.chance(2) ? random.below(8) : random.number()),
                             .body = bytes_of(body)});
}

// Each takes a receive buffer or stands in line for one, and nothing follows.
void announce_and_stop(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const std::uint64_t count = 1 + random.below(100);
  for (std::uint64_t i = 0; i < count; ++i) {
    link.peer.put({.kind = CellKind::announce, .connection = link.name, .body = announcement(20'000)});
  }
  link.peer.ring();
  if (random.chance(2)) {
    link.peer.put(
        {.kind = CellKind::piece, .length = 8000, .connection = link.name, .body = bytes_of(std::uint64_t{0})});
    link.peer.ring();
  }
}

void more_than_announced(HostileTarget& target, Random&, Kept&) {
  Connected link = connected(target);
  link.peer.put({.kind = CellKind::announce, .connection = link.name, .body = announcement(9'000)});
  link.peer.ring();
  for (std::uint64_t i = 0; i < 4; ++i) {
    link.peer.put({.kind = CellKind::piece, .length = 8000, .connection = link.name, .body = bytes_of(i * 8000)});
  }
  link.peer.ring();
}

}  // namespace

std::optional<RawPeer> begin_writing_into(const std::string& service, DAT_CONN_QUAL qualifier, std::uint32_t& name) {
  RawPeer peer(service);
  name = peer.shake_hands() ? peer.connect(qualifier, kOwnName, {}) : 0;
  if (name == 0) {
    throw std::runtime_error("a correct request was not accepted");
  }
  shm::AnnounceBody body{};
  body.length = 20'000;
  body.can_push = 1;
  peer.put({.kind = CellKind::announce, .connection = name, .body = bytes_of(body)});
  peer.ring();
  const auto answer = peer.take();
  if (!answer || answer->kind != CellKind::push) {
    return std::nullopt;
  }
  shm::MemoryBody memory{};
  std::copy_n(answer->body.begin(), sizeof memory, reinterpret_cast<std::byte*>(&memory));
  peer.outbound().header().grants[memory.grant_slot % shm::kGrantSlots].store(memory.grant | 1);
  return peer;
}

const std::vector<Attack>& attacks_on_memory() {
  static const std::vector<Attack> all{
      {"RdmaAnything", rdma_anything},
      {"FaultInAnything", fault_in_anything},
      {"ShortWritesThatLie", short_writes_that_lie},
      {"ExtendedUnasked", extended_unasked},
      {"AtomicsOnAnything", atomics_on_anything},
      {"NeverLetsGo", never_lets_go},
      {"PieceOutsideTheRing", piece_outside},
      {"PieceTooLong", piece_too_long},
      {"AnnounceAnything", announce_anything},
      {"AnnounceMemory", announce_memory},
      {"WritesForEver", writes_for_ever},
      {"AnswersAboutMemoryUnasked", answers_about_memory_unasked},
      {"AnnounceAndStop", announce_and_stop},
      {"MoreThanAnnounced", more_than_announced},
  };
  return all;
}

}  // namespace anydat::test
