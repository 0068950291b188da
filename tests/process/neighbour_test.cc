// SPDX-License-Identifier: BSD-3-Clause
// Who lives and whose memory it is, in the circumstances that programs get into: whatever they are, messages and RDMA
// arrive, and no memory is written that is not, or no longer, the peer's to write.
#include "neighbour.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "support/dat_events.h"

namespace anydat::test {
namespace {

bool processes_have_descriptors() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return false;
  constexpr int kPeerDescriptor = 77;  // SO_PEERPIDFD, which older headers lack
  int descriptor = -1;
  socklen_t length = sizeof descriptor;
  if (::getsockopt(pair[0], SOL_SOCKET, kPeerDescriptor, &descriptor, &length) != 0) {
    descriptor = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  }
  for (const int fd : {pair[0], pair[1], descriptor}) ::close(fd);
  return descriptor >= 0;
}

class Neighbours : public testing::TestWithParam<Wire> {
 protected:
  // The second is connected to by the first.
  void start(std::vector<std::string> first, std::vector<std::string> second) {
    first_.emplace(GetParam(), std::move(first));
    second_.emplace(GetParam(), std::move(second));
    first_->connect_to(*second_);
  }
  bool namespaces() {
    try {
      Neighbour(GetParam(), {"pid-namespace"});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
  // 1 MiB each way by Sends, Writes and Reads.
  void exchange(int seed) {
    for (Neighbour* from : {&*first_, &*second_}) {
      Neighbour& to = from == &*first_ ? *second_ : *first_;
      from->send(++seed);
      to.receive(seed);
      from->write(++seed);
      EXPECT_TRUE(to.holds(seed));
      from->read(seed);
    }
  }

  std::optional<Neighbour> first_;
  std::optional<Neighbour> second_;
};

TEST_P(Neighbours, ExchangeWhenOneIsInAnotherPidNamespace) {
  if (!namespaces()) GTEST_SKIP() << "this system gives no namespaces";
  start({}, {"pid-namespace"});
  exchange(10);
}

TEST_P(Neighbours, ExchangeWhenEachIsInAPidNamespaceOfItsOwn) {
  if (!namespaces()) GTEST_SKIP() << "this system gives no namespaces";
  start({"pid-namespace"}, {"pid-namespace"});
  exchange(10);
}

// LMR-FREE-8: the writer has no number where the memory's owner lives.
TEST_P(Neighbours, FreeWaitsForAWriterOfAnotherPidNamespace) {
  if (!namespaces()) GTEST_SKIP() << "this system gives no namespaces";
  for (int round = 0; round < 12 && !HasFailure(); ++round) {
    start({}, {"pid-namespace"});
    first_->write_endlessly(256 << 10);
    second_->free_and_fill();
    EXPECT_EQ(first_->end_of_writing(), std::to_string(DAT_DTO_ERR_REMOTE_ACCESS));
    EXPECT_EQ(second_->touched(), 0u) << "bytes were written after dat_lmr_free had returned";
  }
}

// A child that was not made by fork(): the library has not been told of it.
TEST_P(Neighbours, DeathIsNoticedAlthoughAChildHoldsAllDescriptors) {
  if (!processes_have_descriptors()) GTEST_SKIP() << "this system has no descriptors of processes";
  start({}, {});
  second_->leave_a_child();
  second_->kill();
  EXPECT_EQ(first_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
}

// As by pthread_exit() in main(): the process has a number that no thread of it answers to any more.
TEST_P(Neighbours, ExchangeWhenAMainThreadHasEnded) {
  start({"main-thread-ends"}, {"main-thread-ends"});
  exchange(10);
  second_->tell("end-main-thread");
  exchange(20);
  first_->tell("end-main-thread");
  exchange(30);
}

// A program that drops its privileges: no other process may look into it from then on.
TEST_P(Neighbours, ExchangeOnceTheyMayNotLookIntoEachOtherAnyMore) {
  start({}, {});
  exchange(10);
  first_->hide();
  exchange(20);
  second_->hide();
  exchange(30);
}

// The same with messages that have been offered to be read or written directly, and are not any more.
TEST_P(Neighbours, LoseNothingWhenTheyMayNotLookIntoEachOtherAnyMore) {
  start({}, {});
  first_->send(1);
  second_->tell("receive-last 1");
  first_->tell("post-sends 12 5");
  first_->hide();
  second_->hide();
  second_->tell("post-receives 12");
  second_->tell("receive-some 12 5");
  first_->tell("await-sent 12");
}

TEST_P(Neighbours, WritesGoOnWhenTheirTargetMayNotBeLookedIntoAnyMore) {
  start({}, {});
  first_->write_endlessly(kNeighbourBytes);
  second_->hide();
  second_->tell("clear");
  second_->free_and_fill();
  EXPECT_EQ(first_->end_of_writing(), std::to_string(DAT_DTO_ERR_REMOTE_ACCESS));
  EXPECT_EQ(second_->touched(), 0u);
}

// The writer is stopped in the middle of its Writes, so that it goes on with them before it looks at anything else.
TEST_P(Neighbours, NothingIsWrittenIntoTheProgramThatIsExecuted) {
  for (int round = 0; round < 5 && !HasFailure(); ++round) {
    start({}, {"fixed-addresses"});
    first_->write_endlessly(kNeighbourBytes);
    first_->stop();
    second_->execute();
    first_->resume();
    first_->end_of_writing();
    EXPECT_EQ(second_->touched(), 0u) << "bytes of the next program were overwritten";
    EXPECT_EQ(first_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
  }
}

// The writer goes on all the time, so that its copies begin at any moment of the execve, from before it to after it.
TEST_P(Neighbours, NothingIsWrittenIntoTheProgramThatIsExecutedMeanwhile) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, kNeighbourBytes}) {
    start({}, {"fixed-addresses"});
    first_->write_endlessly(bytes);
    second_->execute();
    first_->end_of_writing();
    EXPECT_EQ(second_->touched(), 0u) << "bytes of the next program were overwritten by Writes of " << bytes;
    EXPECT_EQ(first_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
  }
}

std::vector<Wire> local_wires() {
  std::vector<Wire> wires;
  for (const Wire& wire : all_wires()) {
    if (wire.name.starts_with("shm")) wires.push_back(wire);
  }
  return wires;
}

INSTANTIATE_TEST_SUITE_P(Wires, Neighbours, testing::ValuesIn(local_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
