// SPDX-License-Identifier: BSD-3-Clause
// The local wire spoken by hand (docs/wire-shm.md), by a sender that begins its messages and does not end them. A
// sender that uses the library cannot be stopped there: the receiver reads what it has announced for itself.
#pragma once

#include <dat/udat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "process/raw_peer.h"
#include "support/progress.h"

namespace anydat::test {

class HalfSender {
 public:
  // Asks for a connection at that service point of soft-lo; `accept` is to let it in. Returns from there on.
  HalfSender(DAT_CONN_QUAL qualifier, const std::function<void()>& accept);
  ~HalfSender() { leave(); }
  HalfSender(const HalfSender&) = delete;
  HalfSender& operator=(const HalfSender&) = delete;

  // Whole at once: it has to fit into cells.
  void send(std::span<const std::byte> message);
  // Announces one of so many bytes, all zero but that it begins so. Its first piece is sent as soon as the receiver has
  // taken a buffer for it, the others are withheld.
  void begin(std::span<const std::byte> beginning, std::size_t bytes);
  // From now on it listens to what the receiver says. No further message.
  void stand_by();

  // Sends the rest of all, and all of what is asked for later.
  void go_on() { goes_on_ = true; }
  // Hangs up, as a process that dies.
  void leave();

 private:
  struct Begun {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;
    bool wanted = false;  // the receiver waits for it
  };

  void listen();
  void take_one();
  void send_piece(std::uint32_t number);

  const Bystander bystander_;  // it sends when its thread is given a processor
  RawPeer peer_;
  std::uint32_t connection_ = 0;  // the receiver's name for it
  std::uint64_t position_ = 0;    // in the bulk ring
  std::vector<Begun> begun_;      // by number
  std::atomic<bool> goes_on_ = false;
  std::atomic<bool> leaves_ = false;
  std::thread listener_;  // has all of the above from stand_by() to leave()
};

}  // namespace anydat::test
