// SPDX-License-Identifier: BSD-3-Clause
#include "wire/mpa_peer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/big_endian.h"
#include "support/patience.h"

namespace anydat::test {

using namespace nic::soft::iwarp;

MpaPeer::MpaPeer(DAT_CONN_QUAL port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("no service point answers over TCP");
  }
  // Pieces go out as they are made, and one of a dead stream is not waited with for ever.
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // So that being held back is noticed early.
  const int bytes = 128 << 10;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

MpaPeer::MpaPeer(os::UniqueFd socket) : socket_(std::move(socket)) {}

void MpaPeer::send(std::span<const std::byte> bytes) {
  send_within(bytes, patience());
}

std::size_t MpaPeer::send_what_goes(std::span<const std::byte> bytes) {
  return send_within(bytes, quiet_time());
}

// Who does not read what it is sent is perhaps what the test is about; who has hung up the test will notice.
std::size_t MpaPeer::send_within(std::span<const std::byte> bytes, std::chrono::milliseconds pause) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) break;
    if (count > 0) sent += static_cast<std::size_t>(count);
    pollfd entry{socket_.get(), POLLOUT, 0};
    if (count < 0 && ::poll(&entry, 1, static_cast<int>(pause.count())) <= 0) break;
  }
  return sent;
}

void MpaPeer::stop_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

void MpaPeer::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.reset();
}

void MpaPeer::move_descriptor_to(int number) {
  socket_.reset(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, number));
}

void MpaPeer::hold_little() {
  const int bytes = 64 << 10;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

// ---- set-up

namespace {

StartUp frame_of(const MpaPeer::Greeting& greeting) {
  StartUp frame;
  frame.crc = greeting.crc;
  frame.markers = greeting.markers;
  frame.revision = greeting.revision;
  frame.enhanced = greeting.enhanced;
  frame.private_data = greeting.private_data;
  return frame;
}

Bytes bytes_of(const StartUp& frame) {
  Bytes bytes(kStartUpBytesMax);
  bytes.resize(write_start_up(frame, bytes));
  return bytes;
}

}  // namespace

Bytes MpaPeer::request(const Greeting& greeting) {
  return bytes_of(frame_of(greeting));
}

void MpaPeer::greet(const Greeting& greeting) {
  want_crc_ = greeting.crc;
  send(request(greeting));
}

std::optional<MpaPeer::Answer> MpaPeer::hear_answer() {
  if (!fill(kStartUpHeaderBytes)) return std::nullopt;
  const std::size_t whole = kStartUpHeaderBytes + base::load_big<std::uint16_t>(&heard_[kStartUpHeaderBytes - 2]);
  if (!fill(whole)) return std::nullopt;
  const Bytes bytes = take(whole);
  Answer answer;
  std::size_t length = 0;
  if (parse_start_up(bytes, true, answer.frame, length) != Parsed::whole) {
    ADD_FAILURE() << "the answer is malformed";
    return std::nullopt;
  }
  answer.private_data.assign(answer.frame.private_data.begin(), answer.frame.private_data.end());
  answer.frame.private_data = {};
  crc_ = want_crc_ || answer.frame.crc;
  return answer;
}

bool MpaPeer::hear_request() {
  if (!fill(kStartUpHeaderBytes)) return false;
  const std::size_t whole = kStartUpHeaderBytes + base::load_big<std::uint16_t>(&heard_[kStartUpHeaderBytes - 2]);
  if (!fill(whole)) return false;
  StartUp frame;
  std::size_t length = 0;
  return parse_start_up(take(whole), false, frame, length) == Parsed::whole;
}

Bytes MpaPeer::answer(const Greeting& greeting, bool rejected) {
  StartUp frame = frame_of(greeting);
  frame.reply = true;
  frame.rejected = rejected;
  return bytes_of(frame);
}

// ---- segments

Bytes MpaPeer::frame(const Bytes& segment) const {
  Bytes bytes(kFrameLengthBytes);
  base::store_big(bytes.data(), static_cast<std::uint16_t>(segment.size()));
  bytes = bytes + segment + repeat(frame_padding(segment.size()));
  const std::uint32_t crc = crc_ ? crc32c(0, bytes) : 0;
  bytes.resize(bytes.size() + kCrcBytes);
  store_crc(&bytes[bytes.size() - kCrcBytes], crc);
  return bytes;
}

Bytes MpaPeer::segment(const SegmentHeader& header, const Bytes& payload) {
  Bytes bytes(kSegmentHeaderBytesMax);
  bytes.resize(write_segment_header(header, bytes));
  return bytes + payload;
}

void MpaPeer::send_message(const Bytes& payload, std::uint32_t sequence) {
  SegmentHeader header;
  header.last = true;
  header.sequence = sequence;
  send_segment(header, payload);
}

void MpaPeer::send_terminate(const Bytes& payload) {
  SegmentHeader header;
  header.opcode = Opcode::terminate;
  header.last = true;
  header.sequence = kFirstSequence;
  send_segment(header, payload);
}

void MpaPeer::ask_read(const ReadRequest& request) {
  SegmentHeader header;
  header.opcode = Opcode::read_request;
  header.last = true;
  header.sequence = next_read_++;
  Bytes payload(kReadRequestBytes);
  write_read_request(request, payload);
  send_segment(header, payload);
}

std::optional<MpaPeer::Segment> MpaPeer::hear_segment() {
  while (std::optional<Segment> segment = hear_any_segment()) {
    // Writes of no bytes change nothing, and carry what only its like understand.
    if (segment->header.opcode != Opcode::write || !segment->payload.empty()) return segment;
  }
  return std::nullopt;
}

std::optional<MpaPeer::Segment> MpaPeer::hear_any_segment() {
  if (!fill(kFrameLengthBytes)) return std::nullopt;
  const std::size_t bytes = base::load_big<std::uint16_t>(heard_.data());
  if (!fill(frame_bytes(bytes))) return std::nullopt;
  const Bytes whole = take(frame_bytes(bytes));
  if (crc_) {
    const std::size_t summed = whole.size() - kCrcBytes;
    EXPECT_EQ(crc32c(0, std::span(whole).first(summed)), load_crc(&whole[summed]));
  }
  Segment segment;
  const auto its = std::span(whole).subspan(kFrameLengthBytes, bytes);
  if (const auto wrong = parse_segment_header(its, segment.header)) {
    ADD_FAILURE() << "the library sent a malformed segment: " << describe(*wrong);
    return std::nullopt;
  }
  const auto payload = its.subspan(segment_header_bytes(segment.header.opcode));
  segment.payload.assign(payload.begin(), payload.end());
  return segment;
}

std::optional<MpaPeer::HeardTerminate> MpaPeer::hear_terminate() {
  while (const std::optional<Segment> segment = hear_segment()) {
    if (segment->header.opcode != Opcode::terminate) continue;
    EXPECT_TRUE(segment->header.last);
    EXPECT_EQ(segment->header.sequence, kFirstSequence);
    EXPECT_EQ(segment->header.offset, 0u);
    Terminate message;
    if (!parse_terminate(segment->payload, message)) {
      ADD_FAILURE() << "the Terminate is malformed";
      return std::nullopt;
    }
    EXPECT_TRUE(hung_up());
    return HeardTerminate{message.code, Bytes(message.segment_header.begin(), message.segment_header.end()),
                          Bytes(message.read_request.begin(), message.read_request.end())};
  }
  return std::nullopt;
}

bool MpaPeer::hung_up() {
  while (fill(heard_.size() + 1)) heard_.clear();
  std::byte more;
  const ssize_t count = ::recv(socket_.get(), &more, 1, MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN);
}

bool MpaPeer::fill(std::size_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + 3 * patience();
  while (heard_.size() < bytes) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{socket_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) return false;
    std::array<std::byte, 16384> some;
    const ssize_t count = ::recv(socket_.get(), some.data(), some.size(), MSG_DONTWAIT);
    if (count <= 0) return false;
    heard_.insert(heard_.end(), some.begin(), some.begin() + count);
  }
  return true;
}

Bytes MpaPeer::take(std::size_t bytes) {
  const auto end = heard_.begin() + static_cast<std::ptrdiff_t>(bytes);
  Bytes taken(heard_.begin(), end);
  heard_.erase(heard_.begin(), end);
  return taken;
}

MpaListener::MpaListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_.get(), 64) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port to listen at");
  }
  port_ = ntohs(address.sin_port);
}

std::optional<MpaPeer> MpaListener::accept() {
  pollfd entry{socket_.get(), POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(patience().count())) <= 0) return std::nullopt;
  return MpaPeer(os::UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

}  // namespace anydat::test
