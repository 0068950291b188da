// SPDX-License-Identifier: BSD-3-Clause
// Many connections that send to one SRQ at once, with everything checked that the rules promise about it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "srq_fixture.h"

namespace anydat::test {

// Every message says which connection it belongs to and which number it has there. Checked at each receive:
//   - the cookie is that of a buffer now posted, and of no other message (SRQ-POST-21, INV-3),
//   - the numbers of one connection come in order, without gap or repetition (SRQ-ORD-1, INV-5),
//   - length and bytes are those that were sent (INV-5).
// A reaped buffer is posted again. At the end nothing is missing and the counts fit (INV-1, INV-2).
class SrqTraffic {
 public:
  struct Shape {
    int connections = 8;
    int buffers = 32;             // posted at the beginning; no more than fit on the SRQ
    std::size_t max_bytes = 512;  // of a message, at least 16
    unsigned seed = 1;            // of the message sizes
  };

  SrqTraffic(Side& server, Side& client, const Srq& srq, const Shape& shape);

  // Sends `per_connection` messages on each connection and receives them all. Meanwhile `beside`, if given, is called
  // again and again in a thread of its own.
  void run(int per_connection, const std::function<void()>& beside = {});

  const std::vector<Connection>& connections() const { return connections_; }

 private:
  struct Header {
    std::uint32_t connection;
    std::uint32_t number;
    std::uint64_t length;
  };

  std::size_t length_of(std::uint32_t connection, std::uint32_t number) const;
  void send_all(int per_connection);
  void send_one(std::uint32_t connection, std::uint32_t number);
  bool may_send(std::uint32_t connection);
  void receive_one();
  void check(const DAT_DTO_COMPLETION_EVENT_DATA& dto);

  static constexpr std::uint32_t kWindow = 8;  // messages of one connection on their way

  const Srq& srq_;
  Shape shape_;
  Evd recv_;
  Evd request_;
  Buffers buffers_;
  Lmr source_;
  std::vector<Connection> connections_;
  std::map<DAT_EP_HANDLE, std::uint32_t> by_server_ep_;
  std::vector<bool> posted_;              // by buffer; the receiving thread's
  std::vector<std::uint32_t> expected_;   // by connection: the next number to arrive; the receiving thread's
  std::vector<std::uint32_t> sent_;       // by connection; the sending thread's
  std::vector<std::uint32_t> completed_;  // by connection: Sends completed; the sending thread's
  // Buffers for which no message is on its way, where messages do not wait for one.
  const bool messages_wait_;
  std::atomic<int> unclaimed_;
};

}  // namespace anydat::test
