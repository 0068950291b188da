// SPDX-License-Identifier: BSD-3-Clause
// What the tests of endpoints, connections and data transfer have in common.
#pragma once

#include <dat/udat.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "srq_fixture.h"  // cookies, patterns, buffers

namespace anydat::test {

// EVDs for one endpoint alone, so that its events can be told from those of others.
class OwnEvds {
 public:
  explicit OwnEvds(const Side& side, DAT_COUNT qlen = 256);
  OwnEvds(const Ia& ia, DAT_COUNT qlen);

  operator EpEvds() const { return {.recv = recv.get(), .request = request.get(), .connect = connect.get()}; }

  Evd recv;
  Evd request;
  Evd connect;
};

// dat_ep_connect to the loopback address, without private data.
DAT_RETURN try_connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE);

// A request to `server` by `ep`, which has timed out meanwhile; its TIMED_OUT has been reaped.
DAT_CR_HANDLE expired_request(Side& server, DAT_EP_HANDLE ep, DAT_EVD_HANDLE connect_evd);

// The next event of `evd`, which must be a connection request.
DAT_CR_ARRIVAL_EVENT_DATA expect_request(DAT_EVD_HANDLE evd, Caller caller = Caller::here());
// The next event of `evd`, which must be of that number and about `ep`.
DAT_CONNECTION_EVENT_DATA expect_connection_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep,
                                                  Caller caller = Caller::here());
// The same for a connection that ends: either DISCONNECTED or BROKEN will do (STAT-17). Returns which.
DAT_EVENT_NUMBER expect_terminal_event(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, Caller caller = Caller::here());

DAT_CR_PARAM query_request(DAT_CR_HANDLE request);
std::vector<std::byte> bytes_of(const char* text);
std::vector<std::byte> bytes_of(const void* data, DAT_COUNT size);

// A qualifier that no service point has at the moment.
DAT_CONN_QUAL unused_qualifier(Side& side);

// A public service point with the flags and the EVD of the test's choice.
class AnyPsp : public Owner<dat_psp_free> {
 public:
  AnyPsp(const Ia& ia, DAT_EVD_HANDLE requests, DAT_PSP_FLAGS flags = DAT_PSP_CONSUMER_FLAG);
  DAT_CONN_QUAL qualifier() const { return qualifier_; }

 private:
  DAT_CONN_QUAL qualifier_ = 0;
};

class Rsp : public Owner<dat_rsp_free> {
 public:
  // On a qualifier that was free a moment ago.
  Rsp(Side& side, DAT_EP_HANDLE ep);
  Rsp(Side& side, DAT_EP_HANDLE ep, DAT_EVD_HANDLE requests);
  DAT_CONN_QUAL qualifier() const { return qualifier_; }

 private:
  DAT_CONN_QUAL qualifier_ = 0;
};

// An EVD for connection requests whose arrivals can be awaited without reaping them.
class RequestQueue {
 public:
  RequestQueue(const Ia& ia, DAT_COUNT qlen);
  DAT_EVD_HANDLE get() const { return evd_.get(); }
  DAT_COUNT qlen() const { return evd_.qlen(); }
  // Returns when something has arrived since the last such call.
  void await_arrival() const;

 private:
  Owner<dat_cno_free> cno_;
  Evd evd_;
};

// A server and a client, and buffers on both.
class EpTest : public testing::TestWithParam<Wire> {
 protected:
  static constexpr int kBuffers = 64;
  static constexpr std::size_t kBytes = 256;
  // A message too large to travel without a receive buffer at the peer, whose Send stays in progress until there is
  // one.
  static constexpr std::size_t kLarge = 256 * 1024;

  // Posts to `ep`, which belongs to that side: receive buffer or send source `index`, with the cookie `index`.
  static DAT_RETURN try_recv(const Ep& ep, const Buffers& buffers, int index, std::size_t length = kBytes);
  static DAT_RETURN try_send(const Ep& ep, const Buffers& buffers, int index, std::size_t length = 32,
                             DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);
  static void post_recv(const Ep& ep, const Buffers& buffers, int first, int count = 1);
  // Fills the source with the pattern of its index first.
  static void post_send(const Ep& ep, const Buffers& buffers, int first, int count = 1, std::size_t length = 32,
                        DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);
  // A Send of kLarge bytes from `large`, with that cookie; it is still in progress as long as the peer has no buffer.
  void post_large_send(const Ep& ep, const Lmr& large, DAT_UINT64 number, std::size_t length = kLarge);

  // Both ends with EVDs of their own.
  struct Pair {
    OwnEvds server_evds;
    OwnEvds client_evds;
    Ep server;
    Ep client;
  };
  Pair make_pair(const DAT_EP_ATTR& server_attr = default_ep_attr(),
                 const DAT_EP_ATTR& client_attr = default_ep_attr());
  Pair make_connected_pair(const DAT_EP_ATTR& server_attr = default_ep_attr(),
                           const DAT_EP_ATTR& client_attr = default_ep_attr());
  // One message from client to server, seen at both ends: the connection works.
  void expect_working(const Pair& pair, Caller caller = Caller::here());

  Side server{GetParam()};
  Side client{GetParam()};
  Buffers server_buffers{server.ia, server.pz, kBuffers, kBytes};
  Buffers client_buffers{client.ia, client.pz, kBuffers, kBytes};
};

}  // namespace anydat::test
