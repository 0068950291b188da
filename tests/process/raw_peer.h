// SPDX-License-Identifier: BSD-3-Clause
// The local wire spoken by hand, so that it can be spoken wrongly. Knows the format (layout.h) and nothing of the
// library's code.
#pragma once

#include <dat/udat.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nic/soft/wire/shm/layout.h"
#include "support/patience.h"

namespace anydat::test {

namespace shm = nic::soft::shm;

// A descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The name of a service point of adapter soft-lo, as the library forms it.
std::string raw_service_name(DAT_CONN_QUAL qualifier);

// A segment as a receiver makes it: a memfd of the right size and seals with a valid header, unless told otherwise.
struct SegmentRecipe {
  std::size_t bytes = shm::kSegmentBytes;
  bool memfd = true;
  bool sealed = true;
  std::uint32_t magic = shm::kMagic;
  std::uint32_t version = shm::kVersion;
  std::uint64_t claimed_bytes = shm::kSegmentBytes;
};
Fd make_segment(const SegmentRecipe& recipe);
Fd make_region_table();  // an empty one
Fd make_marks();         // an empty table of them

// A mapped segment.
class RawSegment {
 public:
  RawSegment() = default;
  explicit RawSegment(int fd);
  RawSegment(RawSegment&& other) noexcept;
  RawSegment& operator=(RawSegment&& other) noexcept;
  ~RawSegment();
  explicit operator bool() const { return memory_ != nullptr; }
  shm::SegmentHeader& header() const { return *reinterpret_cast<shm::SegmentHeader*>(memory_); }
  std::span<std::byte> cells() const { return {memory_ + shm::kHeaderBytes, shm::kCellRingBytes}; }
  std::span<std::byte> bulk() const { return {memory_ + shm::kHeaderBytes + shm::kCellRingBytes, shm::kBulkBytes}; }
  std::span<std::byte> all() const { return {memory_, shm::kSegmentBytes}; }

 private:
  std::byte* memory_ = nullptr;
};

// A message in cells, every field of which may lie.
struct RawCell {
  shm::CellKind kind = shm::CellKind::none;
  std::uint8_t flags = 0;
  std::optional<std::uint32_t> cells = {};   // else what the body needs
  std::optional<std::uint32_t> length = {};  // else the body's
  std::uint32_t connection = 0;
  std::uint32_t aux = 0;
  std::vector<std::byte> body = {};
};

// What a body of one of the format's structures looks like in memory.
template <typename Body>
std::vector<std::byte> bytes_of(const Body& body) {
  const auto* from = reinterpret_cast<const std::byte*>(&body);
  return {from, from + sizeof body};
}

// One end of a link. The steps of setting it up are separate, so that they can be left out, doubled and mixed up.
class RawPeer {
 public:
  explicit RawPeer(const std::string& service);  // connects to it
  explicit RawPeer(Fd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }
  void hang_up() { socket_ = Fd(); }

  bool send_bytes(std::span<const std::byte> bytes, const std::vector<int>& descriptors = {});
  bool greet(shm::GreetingKind kind, const std::vector<int>& descriptors = {});
  // The next greeting; nothing if the other side hangs up or is silent for that long.
  struct Heard {
    shm::Greeting greeting;
    Fd descriptor;
  };
  std::optional<Heard> hear(std::chrono::milliseconds timeout = patience());
  // True once the other side has hung up.
  bool cut(std::chrono::milliseconds timeout = patience());

  // Lets the other side find our memory when it tries whether it can copy from process to process.
  void offer_memory() { offers_memory_ = true; }
  void show_memory(const RawSegment& inbound) const;  // if so
  // The whole handshake from the connecting side, done right. False if the other side does not play along.
  bool shake_hands();
  const RawSegment& inbound() const { return inbound_; }    // what we read
  const RawSegment& outbound() const { return outbound_; }  // what we write
  void use(RawSegment inbound, RawSegment outbound);

  // Speaks for the same process as that one, to which there is a link already.
  void join(const RawPeer& other) { node_ = other.node_; }
  // Says that it is the node that has greeted so.
  void claim_to_be(const shm::Greeting& greeting);

  // Publishes a message where the ring has come to, whether there is room or not.
  void put(const RawCell& cell);
  void ring();
  // The next message to us, taken.
  struct Message {
    shm::CellKind kind;
    std::uint32_t length;
    std::uint32_t connection;
    std::uint32_t aux;
    std::vector<std::byte> body;
  };
  std::optional<Message> take(std::chrono::milliseconds timeout = patience());

  // Asks for a connection under our name `connection`, is accepted and says ready. Returns the other side's name for
  // it, or 0.
  std::uint32_t connect(DAT_CONN_QUAL qualifier, std::uint32_t connection, std::span<const std::byte> private_data);

  std::uint64_t produced() const { return produced_; }

 private:
  using Node = std::array<std::uint8_t, sizeof shm::Greeting::node>;
  static Node new_node();

  Fd socket_;
  Node node_ = new_node();
  bool offers_memory_ = false;
  RawSegment inbound_;
  RawSegment outbound_;
  std::uint64_t produced_ = 0;
  std::uint64_t consumed_ = 0;
};

shm::ConnectBody connect_body(DAT_CONN_QUAL qualifier, std::uint32_t connection);

}  // namespace anydat::test
