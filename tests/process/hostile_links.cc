// SPDX-License-Identifier: BSD-3-Clause
// Hostile peers that have a link, and most of them a connection.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <utility>

#include "hostile_attacks.h"

namespace anydat::test {
namespace {

using Kept = std::vector<RawPeer>;
using shm::CellKind;

constexpr std::uint32_t kOwnName = 77;

RawPeer linked(HostileTarget& target) {
  RawPeer peer(target.service());
  if (!peer.shake_hands()) {
    throw std::runtime_error("a correct handshake was refused");
  }
  return peer;
}

struct Connected {
  RawPeer peer;
  std::uint32_t name;  // the target's, for its end
};

Connected connected(HostileTarget& target) {
  Connected result{.peer = linked(target), .name = 0};
  result.name = result.peer.connect(target.qualifier(), kOwnName, {});
  if (result.name == 0) {
    throw std::runtime_error("a correct request was not accepted");
  }
  return result;
}

// Sends cells that cannot be meant well, and expects to be cut off.
void expect_cut_for(RawPeer& peer, const RawCell& cell) {
  peer.put(cell);
  peer.ring();
  EXPECT_TRUE(peer.cut()) << "kind " << static_cast<int>(cell.kind);
}

std::uint64_t odd_number(Random& random) {
  static constexpr std::array<std::uint64_t, 9> kOdd{0,
                                                     1,
                                                     63,
                                                     shm::kInlineBytesMax,
                                                     shm::kInlineBytesMax + 1,
                                                     shm::kBulkBytes,
                                                     std::numeric_limits<std::uint32_t>::max(),
                                                     std::uint64_t{1} << 63,
                                                     std::numeric_limits<std::uint64_t>::max()};
  return random.chance(3) ? random.number() : kOdd[random.below(kOdd.size())];
}

void random_ring(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer = linked(target);
  const std::vector<std::byte> noise = random_bytes(random, 64 * 1024);
  for (std::size_t at = 0; at < shm::kCellRingBytes; at += noise.size()) {
    std::copy(noise.begin(), noise.end(), peer.outbound().cells().begin() + static_cast<std::ptrdiff_t>(at));
  }
  peer.ring();
  EXPECT_TRUE(peer.cut());
}

void random_header(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const std::vector<std::byte> noise = random_bytes(random, shm::kHeaderBytes);
  std::copy(noise.begin(), noise.end(), link.peer.outbound().all().begin());
  std::copy(noise.rbegin(), noise.rend(), link.peer.inbound().all().begin());
  for (int i = 0; i < 100; ++i) {
    link.peer.put({.kind = CellKind::send, .connection = link.name, .body = random_bytes(random, 40)});
    link.peer.ring();
  }
}

void random_cells(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  for (int i = 0; i < 200; ++i) {
    link.peer.put(random_cell(random, {link.name, 0, kOwnName}));
    link.peer.ring();
  }
}

void cells_without_connection(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer = linked(target);
  for (int i = 0; i < 200; ++i) {
    RawCell cell = random_cell(random, {0, 1, (1u << 20) + 1});
    cell.cells.reset();
    peer.put(cell);
    peer.ring();
  }
}

void wrong_cell_count(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  static constexpr std::array<std::uint32_t, 5> kCounts{0, 2, shm::kCellCount, shm::kCellCount + 1, 0xffff};
  expect_cut_for(link.peer, {.kind = CellKind::send,
                             .cells = kCounts[random.below(kCounts.size())],
                             .connection = link.name,
                             .body = random_bytes(random, 40)});
}

void huge_length(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const auto length = static_cast<std::uint32_t>(49 + random.below(std::numeric_limits<std::uint32_t>::max() - 49));
  expect_cut_for(link.peer,
                 {.kind = CellKind::send, .length = length, .connection = link.name, .body = random_bytes(random, 40)});
}

void bad_connect(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer = linked(target);
  shm::ConnectBody body = connect_body(target.qualifier(), kOwnName);
  switch (random.below(3)) {
    case 0:
      (random.chance(2) ? body.remote : body.local).generic.sa_family = static_cast<sa_family_t>(AF_INET + 1);
      break;
    case 1:
      body.private_data_bytes = static_cast<std::uint32_t>(nic::kPrivateDataMax + 1 + random.below(0xffff));
      break;
    default:
      expect_cut_for(peer, {.kind = CellKind::connect, .body = random_bytes(random, 40)});
      return;
  }
  expect_cut_for(peer, {.kind = CellKind::connect, .body = bytes_of(body)});
}

void many_requests(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer = linked(target);
  // To a service point that is there, or to one that is not; under many names or one; and nobody reads the answers.
  const DAT_CONN_QUAL qualifier = random.chance(2) ? target.qualifier() : 1;
  const bool one_name = random.chance(2);
  for (std::uint32_t i = 0; i < 100; ++i) {
    peer.put({.kind = CellKind::connect, .body = bytes_of(connect_body(qualifier, one_name ? kOwnName : i + 1))});
    peer.ring();
    if (random.chance(4)) {
      peer.put({.kind = CellKind::cancel, .aux = one_name ? kOwnName : i + 1});
    }
  }
}

void unread_answers(HostileTarget& target, Random&, Kept&) {
  RawPeer peer = linked(target);
  // Each is answered at once. The ring of answers is never read, so there is no room for most of them.
  const RawCell request{.kind = CellKind::connect, .body = bytes_of(connect_body(1, kOwnName))};
  for (std::uint64_t i = 0; i < 400'000; ++i) {
    while (peer.produced() - peer.outbound().header().cells_consumed.load() > shm::kCellCount / 2) {
      peer.ring();
      if (peer.cut(std::chrono::milliseconds(0))) {
        return;
      }
    }
    peer.put(request);
  }
  ADD_FAILURE() << "all is kept that it does not read";
}

void credit_unasked(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  if (random.chance(2)) {
    const auto credit = static_cast<std::uint32_t>(shm::kWindowCells + 1 + random.below(0xffff0000));
    expect_cut_for(link.peer, {.kind = CellKind::credit, .connection = link.name, .aux = credit});
    return;
  }
  for (int i = 0; i < 100; ++i) {
    link.peer.put({.kind = CellKind::credit, .connection = link.name, .aux = shm::kWindowCells});
    link.peer.put({.kind = CellKind::send, .connection = link.name, .body = random_bytes(random, 40)});
    link.peer.ring();
  }
}

void piece_unasked(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const std::uint64_t position = random.number();
  const auto length = static_cast<std::uint32_t>(1 + random.below(shm::kPieceBytesMax));
  link.peer.put({.kind = CellKind::piece, .length = length, .connection = link.name, .body = bytes_of(position)});
  link.peer.ring();
}

// RDMA on memory that is not its own, or with answers to questions that nobody asked.
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

// Immediate data for a program that takes none, atomic operations that are none, and answers to what nobody has asked.
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
  body.memory.leaf = static_cast<std::uint32_t>(random.chance(4) ? random.number() : random.below(shm::kLeafCount));
  body.memory.leave = random.chance(4) ? 0 : 2 * random.below(100);
  body.memory.span_count = static_cast<std::uint32_t>(random.chance(4) ? odd_number(random) : 1 + random.below(4));
  std::uint64_t left = body.length;
  for (shm::MemoryBody::Span& span : body.memory.spans) {
    span.length = random.chance(8) ? odd_number(random) : random.below(left + 1);
    span.address = random.chance(2) ? odd_number(random) : reinterpret_cast<std::uint64_t>(&body);
    left -= std::min(left, span.length);
  }
  body.memory.spans[3].length += left;
  if (body.memory.leaf < shm::kLeafCount) {
    peer.inbound().header().leaves[body.memory.leaf].store(body.memory.leave);
  }
  peer.put({.kind = CellKind::announce, .connection = name, .body = bytes_of(body)});
  peer.ring();
  if (const auto answer = peer.take(std::chrono::milliseconds(20)); answer && answer->kind == CellKind::push) {
    // It may write there now; it says so, or does, or changes its mind.
    peer.put({.kind = random.chance(2) ? CellKind::pushed : CellKind::pulled, .connection = name, .aux = answer->aux});
    peer.put({.kind = CellKind::pushed, .connection = name, .aux = answer->aux});
    peer.ring();
  }
  if (body.memory.leaf < shm::kLeafCount) {
    peer.inbound().header().leaves[body.memory.leaf].store(random.number());
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
  static constexpr std::array kKinds{CellKind::push, CellKind::pushed, CellKind::pulled, CellKind::grant};
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

void answers_unasked(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  static constexpr std::array kKinds{CellKind::accept, CellKind::reject, CellKind::ready};
  shm::AcceptBody body{};
  body.connection = kOwnName;
  body.private_data_bytes = random.chance(2) ? 0 : static_cast<std::uint32_t>(random.number());
  link.peer.put({.kind = kKinds[random.below(kKinds.size())],
                 .connection = link.name,
                 .aux = static_cast<std::uint32_t>(odd_number(random)),
                 .body = bytes_of(body)});
  link.peer.ring();
}

void closes_oddly(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  for (int i = 0; i < 3; ++i) {
    link.peer.put({.kind = CellKind::close,
                   .connection = link.name,
                   .aux = static_cast<std::uint32_t>(random.chance(3) ? odd_number(random) : random.below(5))});
    link.peer.put({.kind = CellKind::send, .connection = link.name, .body = random_bytes(random, 40)});
    link.peer.ring();
  }
}

void sends_before_ready(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer = linked(target);
  peer.put({.kind = CellKind::connect, .body = bytes_of(connect_body(target.qualifier(), kOwnName))});
  peer.ring();
  const auto accepted = peer.take();
  ASSERT_TRUE(accepted && accepted->kind == CellKind::accept);
  shm::AcceptBody body{};
  std::copy_n(accepted->body.begin(), sizeof body, reinterpret_cast<std::byte*>(&body));
  expect_cut_for(peer, {.kind = CellKind::send, .connection = body.connection, .body = random_bytes(random, 40)});
}

void lies_about_reading(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  // Enough for the answers to fill a ring whose reader claims anything.
  for (std::uint32_t i = 0; i < 3000; ++i) {
    link.peer.inbound().header().cells_consumed.store(odd_number(random));
    link.peer.inbound().header().bulk_consumed.store(odd_number(random));
    link.peer.put({.kind = CellKind::connect, .body = bytes_of(connect_body(1, i + 100))});
    if (i % 100 == 0) {
      link.peer.ring();
      if (link.peer.cut(std::chrono::milliseconds(1))) {
        return;
      }
    }
  }
}

void endless_bells(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  const Fd descriptor = make_segment({});
  for (int i = 0; i < 20'000; ++i) {
    if (i % 1000 == 0) {
      link.peer.send_bytes(random_bytes(random, 1 + random.below(30'000)), {descriptor.get()});
    }
    link.peer.ring();
  }
}

// A bell brings the descriptor of a memory to be mapped, one; what comes with it besides is closed.
void descriptors_with_bells(HostileTarget& target, Random&, Kept&) {
  Connected link = connected(target);
  const Fd descriptor = make_segment({});
  const int fd = descriptor.get();
  for (int i = 0; i < 50; ++i) {
    for (const auto& fds : {std::vector{fd, fd}, std::vector{fd, fd, fd}, std::vector<int>(200, fd)}) {
      link.peer.send_bytes(bytes_of(shm::MappingBody{}), fds);
    }
  }
}

void empty_bell(HostileTarget& target, Random&, Kept&) {
  Connected link = connected(target);
  link.peer.send_bytes({});
}

void flips_flags(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  for (int i = 0; i < 2000; ++i) {
    for (const RawSegment* segment : {&link.peer.inbound(), &link.peer.outbound()}) {
      segment->header().attention.store(static_cast<std::uint32_t>(odd_number(random)));
      segment->header().room_wanted.store(static_cast<std::uint32_t>(odd_number(random)));
    }
    if (i % 20 == 0) {
      link.peer.put({.kind = CellKind::send, .connection = link.name, .body = random_bytes(random, 40)});
    }
  }
}

// The body and the header change while the target looks at them.
void changes_its_mind(HostileTarget& target, Random& random, Kept&) {
  Connected link = connected(target);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t place = link.peer.produced() % shm::kCellCount * shm::kCellBytes;
    link.peer.put({.kind = CellKind::send, .connection = link.name, .body = random_bytes(random, 40)});
    for (int change = 0; change < 50; ++change) {
      auto* word = reinterpret_cast<std::atomic<std::uint64_t>*>(link.peer.outbound().cells().data() + place) +
                   random.below(shm::kCellBytes / sizeof(std::uint64_t));
      word->store(random.number());
    }
  }
}

void is_silent_on_a_link(HostileTarget& target, Random& random, Kept& kept) {
  if (random.chance(2)) {
    kept.push_back(linked(target));
  } else {
    kept.push_back(connected(target).peer);
  }
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
  peer.outbound().header().leaves[memory.leaf % shm::kLeafCount].store(memory.leave | 1);
  return peer;
}

RawCell random_cell(Random& random, const std::vector<std::uint32_t>& names) {
  RawCell cell;
  cell.kind = static_cast<CellKind>(random.chance(20) ? random.below(256) : random.below(shm::kCellKindLast + 1u));
  cell.flags = static_cast<std::uint8_t>(random.number());
  cell.connection = random.chance(4) ? static_cast<std::uint32_t>(random.number()) : names[random.below(names.size())];
  cell.aux = static_cast<std::uint32_t>(random.chance(2) ? random.below(8) : odd_number(random));
  cell.body = random_bytes(random, random.below(4) * 48);
  if (random.chance(8)) {
    cell.length = static_cast<std::uint32_t>(odd_number(random));
  }
  if (random.chance(20)) {
    cell.cells = static_cast<std::uint32_t>(random.below(0x10000));
  }
  return cell;
}

const std::vector<Attack>& attacks_on_links() {
  static const std::vector<Attack> all{
      {"RandomRing", random_ring},
      {"RandomHeader", random_header},
      {"RandomCells", random_cells},
      {"CellsWithoutConnection", cells_without_connection},
      {"WrongCellCount", wrong_cell_count},
      {"HugeLength", huge_length},
      {"BadConnect", bad_connect},
      {"ManyRequests", many_requests},
      {"UnreadAnswers", unread_answers},
      {"AnswersAboutMemoryUnasked", answers_about_memory_unasked},
      {"CreditUnasked", credit_unasked},
      {"PieceUnasked", piece_unasked},
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
      {"AnnounceAndStop", announce_and_stop},
      {"MoreThanAnnounced", more_than_announced},
      {"AnswersUnasked", answers_unasked},
      {"ClosesOddly", closes_oddly},
      {"SendsBeforeReady", sends_before_ready},
      {"LiesAboutReading", lies_about_reading},
      {"EndlessBells", endless_bells},
      {"DescriptorsWithBells", descriptors_with_bells},
      {"EmptyBell", empty_bell},
      {"FlipsFlags", flips_flags},
      {"ChangesItsMind", changes_its_mind},
      {"Silence", is_silent_on_a_link},
  };
  return all;
}

}  // namespace anydat::test
