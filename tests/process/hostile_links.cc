// SPDX-License-Identifier: BSD-3-Clause
// Hostile peers that have a link, and most of them a connection: cells, rings and bells.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "hostile_connection.h"

namespace anydat::test {
namespace {

using Kept = std::vector<RawPeer>;
using shm::CellKind;

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
  // To a service point that is there, or to one that is not; under many names or one; and the peer does not read the
  // answers.
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
      {"CreditUnasked", credit_unasked},
      {"PieceUnasked", piece_unasked},
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
