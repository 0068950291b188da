// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/soft/own_pages.h"
#include "nic/timer.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// Where the payload of the segment that is arriving is placed: in the receive buffer of its message, in the sink of a
// Read, or in memory that the peer has named.
//
// Memory for it may not be there (nic/soft/own_pages.h). Then it stays where it has been read to, and nothing more is
// read until it is. A peer that hangs up meanwhile is waited for no longer than kMemoryPatience: how it ends comes
// behind all that it sent.
//
// With the engine held. Lives and dies with its stream.
class Placement final : private OwnPages::User {
 public:
  explicit Placement(TcpStream& stream);
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  void begin_write();  // a segment of one, whose header the reader has

  // Where the rest of the segment goes, or its next bytes. None: it goes nowhere, and perhaps the connection has
  // broken; or it waits for memory.
  std::size_t aim(std::span<iovec> pieces, std::size_t count);
  void landed(std::size_t count);                // so many, by the socket
  bool place(std::span<const std::byte> bytes);  // false: it waits for memory, or the connection has ended

  // ---- memory that is not there
  bool awaits_memory() const { return awaits_memory_; }
  // False: it is awaited.
  bool can_be_written(std::span<const iovec> pieces);
  bool next_buffer_there(std::size_t bytes);         // so much of it; false: it is awaited
  bool next_buffer_surely_there(std::size_t bytes);  // and if not, it is not awaited
  bool result_there();                               // where an atomic operation puts what the word was
  void limit_wait();                                 // if there is one: the peer has hung up
  void set_read_at(std::uint64_t ticks) { read_at_ = ticks; }
  void bring() { targets_.bring(); }  // as OwnPages

 private:
  bool may_write(std::uint64_t at, std::uint64_t length, std::uint64_t& where);  // as the segment does
  std::size_t find_target(std::span<iovec> pieces, std::size_t count);
  void wants_pages() override;
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;
  void give_up();

  TcpStream& stream_;
  OwnPages targets_;
  std::uint64_t read_at_ = 0;   // Engine::ticks()
  bool awaits_memory_ = false;  // what is arriving goes where nothing can be written yet; nothing is read meanwhile
  Timer patience_{[this] { give_up(); }};
};

}  // namespace anydat::nic::soft::iwarp
