// SPDX-License-Identifier: BSD-3-Clause
// A program in the middle of a TCP connection that passes the bytes on, but in pieces, in heaps, late, or only up to a
// certain byte.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "os/unique_fd.h"

namespace anydat::test {

enum class Direction : std::uint8_t { to_server, to_client };
// What happens at the cut: both connections are reset, both are closed (what came before still arrives), or nothing
// passes any more and neither end is told.
enum class Cut : std::uint8_t { none, reset, close, freeze };

// What is done to the connections that come from now on.
struct ProxyPlan {
  Cut cut = Cut::none;
  Direction direction = Direction::to_server;  // where the cut counts
  std::uint64_t after_bytes = 0;               // exactly so many bytes pass in that direction
  std::size_t piece_max = 0;                   // pieces of 1 to so many bytes, chosen anew each time; 0: as they come
  std::size_t join_bytes = 0;                  // bytes are held until so many have come, or no more come for a while
  std::chrono::microseconds delay_max{0};      // each piece is late by 0 to this
  std::uint64_t seed = 1;
};

// Listens on the loopback address and passes everything on to a port there. Any thread may call any method.
class Proxy {
 public:
  explicit Proxy(std::uint16_t target_port);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const { return port_; }
  void set_plan(const ProxyPlan& plan);
  // Bytes that the last connection has passed in that direction.
  std::uint64_t passed(Direction direction) const;
  // Connections that are still open at either side, frozen ones among them.
  std::size_t open() const;
  // Closes what is frozen.
  void drop_frozen();

 private:
  class Course;

  void run();
  void accept_one();

  std::uint16_t target_port_;
  std::uint16_t port_ = 0;
  os::UniqueFd listener_;
  os::UniqueFd wake_;
  mutable std::mutex mutex_;  // guards all below; the thread holds it save while it sleeps
  ProxyPlan plan_;
  std::vector<std::unique_ptr<Course>> courses_;
  std::array<std::uint64_t, 2> passed_{};
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace anydat::test
