// SPDX-License-Identifier: BSD-3-Clause
// What is of the TCP wire alone (docs/wire-iwarp.md): which wire is chosen, addresses and ports, segments of all
// lengths, and what passes a message that waits for a buffer. That it keeps the standard's rules is shown by the
// conformance suite, and what hostile peers can do to it by iwarp_attacks_test.cc and its like.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

Wire wire(const std::string& ia, std::map<std::string, std::string> env) {
  return {.name = "tcp", .ia_name = ia, .env = std::move(env)};
}
Wire tcp(const std::string& ia = "soft-lo") {
  return wire(ia, {{"DAT_WIRE", "tcp"}});
}

DAT_DTO_COOKIE cookie(DAT_UINT64 number) {
  DAT_DTO_COOKIE result{};
  result.as_64 = number;
  return result;
}

void post_send(const Ep& ep, DAT_LMR_TRIPLET from, DAT_UINT64 number) {
  require(dat_ep_post_send(ep.get(), 1, &from, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
}
void post_recv(const Ep& ep, DAT_LMR_TRIPLET to, DAT_UINT64 number) {
  require(dat_ep_post_recv(ep.get(), 1, &to, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

void exchange_a_message(Side& server, Side& client, const Connection& ends) {
  const Lmr sink(server.ia, server.pz, 64);
  const Lmr source(client.ia, client.pz, 64);
  std::iota(reinterpret_cast<unsigned char*>(source.bytes().data()),
            reinterpret_cast<unsigned char*>(source.bytes().data()) + 64, static_cast<unsigned char>(1));
  post_recv(ends.server, sink.triplet(), 1);
  post_send(ends.client, source.triplet(), 2);
  expect_completion(client.request.get());
  EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, 64u);
  EXPECT_TRUE(std::equal(sink.bytes().begin(), sink.bytes().end(), source.bytes().begin()));
}

TEST(TcpWire, IsChosenWhereSharedMemoryReachesNobody) {
  Side server(tcp());
  Side client(wire("soft-lo", {{"DAT_WIRE", "auto"}}));
  const Connection ends = connect_pair(server, client);
  exchange_a_message(server, client, ends);
}

TEST(TcpWire, IsNotLookedForWhereOnlySharedMemoryIsWanted) {
  Side server(tcp());
  Side client(wire("soft-lo", {{"DAT_WIRE", "shm"}}));
  const Ep ep(client);
  ASSERT_EQ(dat_ep_connect(ep.get(), loopback(), server.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            DAT_SUCCESS);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

TEST(TcpWire, ReachesIpv6Addresses) {
  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool usable = probe >= 0 && ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (probe >= 0) ::close(probe);
  if (!usable) GTEST_SKIP() << "this host has no IPv6";
  Side server(tcp("soft"));
  Side client(tcp("soft"));
  Connection ends{Ep(server), Ep(client)};
  ASSERT_EQ(dat_ep_connect(ends.client.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), server.listen(),
                           DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            DAT_SUCCESS);
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_HANDLE cr = request.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param{};
  require(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  EXPECT_EQ(param.remote_ia_address_ptr->sa_family, AF_INET6);
  require(dat_cr_accept(cr, ends.server.get(), 0, nullptr), "dat_cr_accept");
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  exchange_a_message(server, client, ends);
}

TEST(TcpWire, PortsComeFromTheRangeThatWasChosen) {
  const Wire limited = wire("soft-lo", {{"DAT_WIRE", "tcp"}, {"DAT_PORT_RANGE", "41000-41199"}});
  Side server(limited);
  Side client(limited);
  EXPECT_THAT(server.listen(), testing::AllOf(testing::Ge(41000u), testing::Le(41199u)));
  const Connection ends = connect_pair(server, client);
  EXPECT_THAT(ends.client.query().local_port_qual, testing::AllOf(testing::Ge(41000u), testing::Le(41199u)));
  EXPECT_EQ(ends.client.query().local_port_qual, ends.server.query().remote_port_qual);
}

// Some ports in a row of the loopback address that no other process will be given while this lives, and that we can
// share.
class PortsInARow {
 public:
  explicit PortsInARow(int count) {
    while (static_cast<int>(sockets_.size()) < count) {
      const int port = sockets_.empty() ? 0 : first_ + static_cast<int>(sockets_.size());
      if (!take(port)) give_back();
    }
  }
  ~PortsInARow() { give_back(); }
  PortsInARow(const PortsInARow&) = delete;
  PortsInARow& operator=(const PortsInARow&) = delete;

  std::string range() const {
    return std::to_string(first_) + "-" + std::to_string(first_ + static_cast<int>(sockets_.size()) - 1);
  }

 private:
  bool take(int port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) throw std::runtime_error("no socket");
    sockets_.push_back(socket);
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    socklen_t size = sizeof address;
    if (port > 65535 || ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) return false;
    if (port == 0 && ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0)
      first_ = ntohs(address.sin_port);
    return true;
  }
  void give_back() {
    for (const int socket : sockets_) ::close(socket);
    sockets_.clear();
  }

  int first_ = 0;
  std::vector<int> sockets_;
};

// EP-CONN-21: as many connections to one service point as there are ports, whatever order these are tried in; then
// ports are a resource that has run out, and no fault of the address.
TEST(TcpWire, EveryPortOfTheRangeServesOneConnectionToAServicePoint) {
  constexpr int kPorts = 5;
  Side server(tcp());
  server.listen();  // first, or the service point might have one of the ports
  const PortsInARow ports(kPorts);
  Side client(wire("soft-lo", {{"DAT_WIRE", "tcp"}, {"DAT_PORT_RANGE", ports.range()}}));
  std::vector<Connection> connections;
  for (int i = 0; i < kPorts; ++i) connections.push_back(connect_pair(server, client));
  exchange_a_message(server, client, connections.back());
  const Ep one_more(client);
  EXPECT_EQ(DAT_GET_TYPE(dat_ep_connect(one_more.get(), loopback(), server.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                                        DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)),
            static_cast<DAT_RETURN>(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(one_more.state(), DAT_EP_STATE_UNCONNECTED);
}

TEST(TcpWire, APortThatAStrangerListensOnIsInUse) {
  const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(stranger, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(stranger, 1), 0);
  ASSERT_EQ(::getsockname(stranger, reinterpret_cast<sockaddr*>(&address), &size), 0);
  for (const char* choice : {"tcp", "auto"}) {
    SCOPED_TRACE(choice);
    const Side side(wire("soft-lo", {{"DAT_WIRE", choice}}));
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    EXPECT_EQ(DAT_GET_TYPE(dat_psp_create(side.ia.get(), ntohs(address.sin_port), side.requests.get(),
                                          DAT_PSP_CONSUMER_FLAG, &psp)),
              static_cast<DAT_RETURN>(DAT_CONN_QUAL_IN_USE));
  }
  ::close(stranger);
}

class TcpSegments : public testing::TestWithParam<const char*> {};

TEST_P(TcpSegments, OfAllLengthsArriveAsTheyWereSent) {
  const Wire checked = wire("soft-lo", {{"DAT_WIRE", "tcp"}, {"DAT_CRC", GetParam()}});
  Side server(checked);
  Side client(checked);
  const Connection ends = connect_pair(server, client);
  constexpr std::size_t kMax = (1 << 20) - 7;
  const Lmr source(client.ia, client.pz, kMax);
  const Lmr sink(server.ia, server.pz, kMax);
  unsigned value = 1;
  for (std::byte& byte : source.bytes()) byte = static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{1000},
        std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{8191}, std::size_t{8192},
        std::size_t{8193}, std::size_t{65471}, std::size_t{65472}, std::size_t{65473}, std::size_t{65537},
        std::size_t{130944}, std::size_t{200001}, kMax}) {
    SCOPED_TRACE(length);
    std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0});
    // In pieces, so that frames and segments of memory do not coincide.
    DAT_LMR_TRIPLET from[] = {source.triplet(0, length / 3), source.triplet(length / 3, length - length / 3)};
    DAT_LMR_TRIPLET to[] = {sink.triplet(0, length / 2), sink.triplet(length / 2, kMax - length / 2)};
    require(dat_ep_post_recv(ends.server.get(), 2, to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(ends.client.get(), 2, from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(client.request.get());
    EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, length);
    const auto end = source.bytes().begin() + static_cast<std::ptrdiff_t>(length);
    EXPECT_TRUE(std::equal(source.bytes().begin(), end, sink.bytes().begin()));
    EXPECT_TRUE(length == kMax || sink.bytes()[length] == std::byte{0});
    if (length == 0) continue;
    // And by RDMA, there and back.
    std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0});
    DAT_RMR_TRIPLET remote = sink.remote(0, length);
    require(dat_ep_post_rdma_write(ends.client.get(), 2, from, cookie(3), &remote, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
    expect_completion(client.request.get());
    EXPECT_TRUE(std::equal(source.bytes().begin(), end, sink.bytes().begin()));
    const Lmr back(client.ia, client.pz, length);
    DAT_LMR_TRIPLET into = back.triplet();
    require(dat_ep_post_rdma_read(ends.client.get(), 1, &into, cookie(4), &remote, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    expect_completion(client.request.get());
    EXPECT_TRUE(std::equal(source.bytes().begin(), end, back.bytes().begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Checksums, TcpSegments, testing::Values("on", "off"));

// SRQ-ARR-3: a message without a buffer holds up what must come behind it, and nothing else.
// ---- memory that the program has unmapped although it is registered: its connection ends, with a status, at once

class TcpUnmapped : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;
  TcpUnmapped() : memory_(map()) {}
  ~TcpUnmapped() override { munmap(memory_.data(), kBytes); }
  TcpUnmapped(const TcpUnmapped&) = delete;
  TcpUnmapped& operator=(const TcpUnmapped&) = delete;

  // The addresses stay ours, so that nothing else gets them, and nothing can be read there.
  void unmap() { ASSERT_EQ(mprotect(memory_.data(), kBytes, PROT_NONE), 0); }
  void make_usable() { ASSERT_EQ(mprotect(memory_.data(), kBytes, PROT_READ | PROT_WRITE), 0); }
  void make_read_only() { ASSERT_EQ(mprotect(memory_.data(), kBytes, PROT_READ), 0); }

  Side server{tcp()};
  Side client{tcp()};
  Connection ends = connect_pair(server, client);
  std::span<std::byte> memory_;

 private:
  static std::span<std::byte> map() {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory");
    return {static_cast<std::byte*>(memory), kBytes};
  }
};

TEST_F(TcpUnmapped, ASendFromThereFailsAndEndsItsConnection) {
  const Lmr source(client.ia, client.pz, memory_);
  const Lmr sink(server.ia, server.pz, kBytes);
  post_recv(ends.server, sink.triplet(), 1);
  unmap();
  post_send(ends.client, source.triplet(), 2);
  expect_completion(client.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
}

// Short ones are copied by the thread that posts.
TEST_F(TcpUnmapped, AShortSendFromThereFailsAfterOthersFromItsRegion) {
  constexpr std::size_t kShort = 64;
  const Lmr source(client.ia, client.pz, memory_);
  const Lmr sink(server.ia, server.pz, kBytes);
  for (DAT_UINT64 i = 0; i < 4; ++i) post_recv(ends.server, sink.triplet(), i);
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    post_send(ends.client, source.triplet(0, kShort), i);
    expect_completion(client.request.get());
    expect_completion(server.recv.get());
  }
  unmap();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what has been seen of the memory holds for less
  post_send(ends.client, source.triplet(0, kShort), 3);
  expect_completion(client.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

TEST_F(TcpUnmapped, AWriteFromThereFailsAndEndsItsConnection) {
  const Lmr source(client.ia, client.pz, memory_);
  const Lmr target(server.ia, server.pz, kBytes);
  unmap();
  DAT_LMR_TRIPLET from = source.triplet();
  DAT_RMR_TRIPLET to = target.remote(0, kBytes);
  require(dat_ep_post_rdma_write(ends.client.get(), 1, &from, cookie(1), &to, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_write");
  expect_completion(client.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

TEST_F(TcpUnmapped, AReadOfItEndsItsConnection) {
  const Lmr source(server.ia, server.pz, memory_);
  const Lmr sink(client.ia, client.pz, kBytes);
  unmap();
  DAT_LMR_TRIPLET to = sink.triplet();
  DAT_RMR_TRIPLET from = source.remote(0, kBytes);
  require(dat_ep_post_rdma_read(ends.client.get(), 1, &to, cookie(1), &from, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  const auto event = wait_event(client.request.get());
  ASSERT_TRUE(event);
  EXPECT_NE(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

TEST_F(TcpUnmapped, ASendToThereEndsItsConnection) {
  for (const std::size_t length : {std::size_t{64}, kBytes}) {
    SCOPED_TRACE(length);
    make_usable();
    const Connection pair = connect_pair(server, client);
    const Lmr source(client.ia, client.pz, kBytes);
    const Lmr sink(server.ia, server.pz, memory_);
    post_recv(pair.server, sink.triplet(), 1);
    unmap();
    post_send(pair.client, source.triplet(0, length), 2);
    expect_completion(server.recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    drain(client.request.get());
  }
}

TEST_F(TcpUnmapped, AWriteToThereIsRefused) {
  for (const std::size_t length : {std::size_t{64}, kBytes}) {
    SCOPED_TRACE(length);
    make_usable();
    const Connection pair = connect_pair(server, client);
    const Lmr source(client.ia, client.pz, kBytes);
    const Lmr target(server.ia, server.pz, memory_);
    make_read_only();
    DAT_LMR_TRIPLET from = source.triplet(0, length);
    DAT_RMR_TRIPLET to = target.remote(0, length);
    require(dat_ep_post_rdma_write(pair.client.get(), 1, &from, cookie(1), &to, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
    expect_completion(client.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
}

TEST_F(TcpUnmapped, AReadToThereFails) {
  for (const std::size_t length : {std::size_t{64}, kBytes}) {
    SCOPED_TRACE(length);
    make_usable();
    const Connection pair = connect_pair(server, client);
    const Lmr source(server.ia, server.pz, kBytes);
    const Lmr sink(client.ia, client.pz, memory_);
    make_read_only();
    DAT_LMR_TRIPLET to = sink.triplet(0, length);
    DAT_RMR_TRIPLET from = source.remote(0, length);
    require(dat_ep_post_rdma_read(pair.client.get(), 1, &to, cookie(1), &from, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    expect_completion(client.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
}

TEST(TcpWire, WritesAndReadsPassASendThatWaitsForABuffer) {
  Side server(tcp());
  Side client(tcp());
  const Connection ends = connect_pair(server, client);
  for (const std::size_t length : {std::size_t{64}, std::size_t{100'000}}) {
    SCOPED_TRACE(length);
    const Lmr target(server.ia, server.pz, length);
    const Lmr source(client.ia, client.pz, length);
    const Lmr back(client.ia, client.pz, length);
    std::fill(source.bytes().begin(), source.bytes().end(), std::byte{0x5a});
    post_send(ends.client, source.triplet(), 1);
    DAT_RMR_TRIPLET remote = target.remote(0, length);
    DAT_LMR_TRIPLET from = source.triplet();
    DAT_LMR_TRIPLET into = back.triplet();
    require(dat_ep_post_rdma_write(ends.client.get(), 1, &from, cookie(2), &remote, DAT_COMPLETION_SUPPRESS_FLAG),
            "dat_ep_post_rdma_write");
    require(dat_ep_post_rdma_read(ends.client.get(), 1, &into, cookie(3), &remote, DAT_COMPLETION_SUPPRESS_FLAG),
            "dat_ep_post_rdma_read");
    // Bytes that appear are the only sign: completions are in order.
    EXPECT_TRUE(eventually([&] {
      dat_evd_dequeue(server.connect.get(), std::array<DAT_EVENT, 1>{}.data());
      return std::all_of(back.bytes().begin(), back.bytes().end(), [](const std::byte& byte) {
        return const_cast<const volatile std::byte&>(byte) == std::byte{0x5a};
      });
    })) << "the Write and the Read did not pass";
    EXPECT_FALSE(poll_event(server.recv.get()));
    const Lmr sink(server.ia, server.pz, length);
    post_recv(ends.server, sink.triplet(), 4);
    EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, length);
    expect_completion(client.request.get());
    EXPECT_TRUE(eventually([&] {
      DAT_BOOLEAN idle = DAT_FALSE;
      DAT_EP_STATE state{};
      DAT_BOOLEAN receives = DAT_FALSE;
      dat_ep_get_status(ends.client.get(), &state, &receives, &idle);
      return idle == DAT_TRUE;
    }));
  }
}

}  // namespace
}  // namespace anydat::test
