// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nic/region_table.h"
#include "nic/soft/own_pages.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// What the peer of a connection over TCP reads and changes here: its RDMA Reads and atomic operations, which are
// answered in their order, as far as the socket takes it and the memory is there.
//
// With the engine held; answers go out with the lock of the outgoing half. Lives and dies with its stream.
class ReadResponder final : private OwnPages::User {
 public:
  explicit ReadResponder(TcpStream& stream);
  ReadResponder(const ReadResponder&) = delete;
  ReadResponder& operator=(const ReadResponder&) = delete;

  // All the memory that so many at once need. May throw std::bad_alloc.
  void reserve(std::size_t requests) { served_.reserve(requests); }

  // ---- requests that have arrived; nothing, or why they are refused
  std::uint32_t expected() const { return expected_; }  // the next one's sequence number
  std::optional<TerminateCode> read_asked(std::span<const std::byte> payload);
  std::optional<TerminateCode> atomic_asked(std::span<const std::byte> payload);

  // Goes on with what waited for room in the line, or for memory; true if anything moved.
  bool serve();
  void bring() { sources_.bring(); }  // as OwnPages

 private:
  struct Served {
    ReadRequest request;
    std::uint32_t sequence;
    std::uint32_t offset = 0;
    std::optional<AtomicRequest> atomic{};  // it is none
    std::optional<std::uint64_t> was{};     // and has been carried out
    bool is_consumers() const { return request.bytes > 0 || atomic; }
  };

  bool serves_more() const;
  bool serve_atomic(Served& served);
  RegionCheck source_of(const Served& served, std::uint64_t& where);
  bool touches(const Served& served, std::uint64_t address);
  void refuse(const Served& read, RegionCheck check);
  void wants_pages() override;
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;

  TcpStream& stream_;
  std::uint32_t expected_ = kFirstSequence;
  std::uint32_t response_sequence_ = kFirstSequence;  // of atomic operations
  OwnPages sources_;
  std::vector<Served> served_;
};

}  // namespace anydat::nic::soft::iwarp
