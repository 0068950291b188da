// SPDX-License-Identifier: BSD-3-Clause
// Hostile peers that never get as far as a link.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "hostile_attacks.h"
#include "nic/region_table.h"

namespace anydat::test {
namespace {

using Kept = std::vector<RawPeer>;

shm::Greeting greeting(shm::GreetingKind kind) {
  shm::Greeting result{};
  result.magic = shm::kMagic;
  result.version = shm::kVersion;
  result.kind = kind;
  return result;
}

void random_bytes_first(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  peer.send_bytes(random_bytes(random, random.below(300)));
  EXPECT_TRUE(peer.cut());
}

void wrong_magic_or_version(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  shm::Greeting hello = greeting(shm::GreetingKind::hello);
  (random.chance(2) ? hello.magic : hello.version) ^= static_cast<std::uint32_t>(1 + random.below(0xffffffff));
  peer.send_bytes(bytes_of(hello));
  EXPECT_TRUE(peer.cut());
}

void wrong_kind_first(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  const auto kind = static_cast<std::uint32_t>(random.chance(2) ? 1 + random.below(4) : random.below(0xffffffff) | 4);
  peer.send_bytes(bytes_of(greeting(static_cast<shm::GreetingKind>(kind))));
  EXPECT_TRUE(peer.cut());
}

void cut_short_or_too_long(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  std::vector<std::byte> hello = bytes_of(greeting(shm::GreetingKind::hello));
  std::size_t length = random.below(2 * hello.size());
  length += length == hello.size() ? 1 : 0;
  hello.resize(length);
  peer.send_bytes(hello);
  EXPECT_TRUE(peer.cut());
}

void hello_twice(HostileTarget& target, Random&, Kept&) {
  RawPeer peer(target.service());
  peer.greet(shm::GreetingKind::hello);
  peer.greet(shm::GreetingKind::hello);
  EXPECT_TRUE(peer.cut());
}

void attach_first(HostileTarget& target, Random&, Kept&) {
  RawPeer peer(target.service());
  const Fd segment = make_segment({});
  peer.greet(shm::GreetingKind::attach, {segment.get()});
  EXPECT_TRUE(peer.cut());
}

void descriptors_with_every_step(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  const Fd segment = make_segment({});
  const std::vector<int> many(1 + random.below(60), segment.get());
  peer.greet(shm::GreetingKind::hello, many);
  if (random.chance(2) && peer.hear()) {
    peer.greet(shm::GreetingKind::attach, many);
  }
}

void hangs_up(HostileTarget& target, Random& random, Kept&) {
  RawPeer peer(target.service());
  const auto steps = random.below(4);
  if (steps > 0) {
    peer.greet(shm::GreetingKind::hello);
  }
  if (steps > 1) {
    peer.hear();
  }
  if (steps > 2) {
    const Fd segment = make_segment({});
    peer.greet(shm::GreetingKind::attach, {segment.get()});
  }
}

void is_silent(HostileTarget& target, Random& random, Kept& kept) {
  RawPeer peer(target.service());
  if (random.chance(2)) {
    peer.greet(shm::GreetingKind::hello);
    peer.hear();
  }
  kept.push_back(std::move(peer));
}

void attach_with(HostileTarget& target, const std::vector<int>& descriptors) {
  RawPeer peer(target.service());
  peer.greet(shm::GreetingKind::hello);
  ASSERT_TRUE(peer.hear());
  peer.greet(shm::GreetingKind::attach, descriptors);
  EXPECT_TRUE(peer.cut());
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Attack& attack) {
  return out << attack.name;
}

std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.number());
  }
  return bytes;
}

const std::vector<Attack>& attacks_on_greetings() {
  static const std::vector<Attack> all{
      {"RandomBytes", random_bytes_first},
      {"WrongMagicOrVersion", wrong_magic_or_version},
      {"WrongKindFirst", wrong_kind_first},
      {"CutShortOrTooLong", cut_short_or_too_long},
      {"HelloTwice", hello_twice},
      {"AttachFirst", attach_first},
      {"DescriptorsWithEveryStep", descriptors_with_every_step},
      {"HangsUp", hangs_up},
      {"Silence", is_silent},
  };
  return all;
}

const std::vector<Attack>& attacks_on_descriptors() {
  static const std::vector<Attack> all = [] {
    std::vector<Attack> attacks{
        {"NoDescriptor", [](HostileTarget& target, Random&, Kept&) { attach_with(target, {}); }},
        {"NoRegionTable",
         [](HostileTarget& target, Random&, Kept&) {
           const Fd segment = make_segment({});
           attach_with(target, {segment.get()});
         }},
        // There need not be a huge page to give when the memory is touched.
        {"ARegionTableOfHugePages",
         [](HostileTarget& target, Random&, Kept&) {
           const Fd segment = make_segment({});
           const Fd huge(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
           if (!huge) return;  // this kernel has none
           ASSERT_EQ(::ftruncate(huge.get(), nic::RegionView::kBytes), 0);
           ASSERT_EQ(::fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
           const Fd marks = make_marks();
           attach_with(target, {segment.get(), huge.get(), marks.get()});
         },
         static_cast<bool>(Fd(::memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB)))},
        {"ASegmentAndThenAnother",
         [](HostileTarget& target, Random&, Kept&) {
           const Fd good = make_segment({});
           const Fd bad = bad_descriptor(0);
           attach_with(target, {good.get(), bad.get()});
         }},
    };
    for (int way = 0; way < kBadDescriptors; ++way) {
      attacks.push_back({"NotASegment" + std::to_string(way), [way](HostileTarget& target, Random&, Kept&) {
                           const Fd bad = bad_descriptor(way);
                           const Fd segment = make_segment({});
                           const Fd regions = make_region_table();
                           const Fd marks = make_marks();
                           attach_with(target, {bad.get(), regions.get(), marks.get()});
                           attach_with(target, {segment.get(), bad.get(), marks.get()});
                           attach_with(target, {segment.get(), regions.get(), bad.get()});
                         }});
    }
    return attacks;
  }();
  return all;
}

Fd bad_descriptor(int way) {
  switch (way) {
    case 0:
      return make_segment({.bytes = shm::kSegmentBytes - 4096});
    case 1:
      return make_segment({.bytes = shm::kSegmentBytes + 4096});
    case 2:
      return make_segment({.bytes = 0});
    case 3:
      return make_segment({.sealed = false});
    case 4:
      return make_segment({.memfd = false});
    case 5:
      return make_segment({.magic = shm::kMagic + 1});
    case 6:
      return make_segment({.version = shm::kVersion + 1});
    case 7:
      return make_segment({.claimed_bytes = shm::kSegmentBytes * 2});
    case 8: {
      Fd fd = make_segment({.sealed = false});
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
      return fd;
    }
    case 9: {
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
      }
      ::close(ends[1]);
      return Fd(ends[0]);
    }
    case 10:
      return Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    case 11:
      return Fd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    case 12:
      return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    case 13:
      return Fd(::epoll_create1(EPOLL_CLOEXEC));
    default:
      throw std::runtime_error("there is no such way");
  }
}

}  // namespace anydat::test
