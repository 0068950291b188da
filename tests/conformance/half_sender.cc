// SPDX-License-Identifier: BSD-3-Clause
#include "half_sender.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace anydat::test {
namespace {

constexpr std::uint32_t kNameOfHalfSender = 77;  // for the connection

}  // namespace

HalfSender::HalfSender(DAT_CONN_QUAL qualifier, const std::function<void()>& accept)
    : peer_(raw_service_name(qualifier)) {
  if (!peer_.shake_hands()) throw std::runtime_error("a correct handshake was refused");
  peer_.put({.kind = shm::CellKind::connect, .body = bytes_of(connect_body(qualifier, kNameOfHalfSender))});
  peer_.ring();
  accept();
  const auto answer = peer_.take();
  if (!answer || answer->kind != shm::CellKind::accept) throw std::runtime_error("a correct request was not accepted");
  shm::AcceptBody accepted{};
  std::memcpy(&accepted, answer->body.data(), sizeof accepted);
  connection_ = accepted.connection;
  peer_.put({.kind = shm::CellKind::ready, .connection = connection_});
  peer_.ring();
}

void HalfSender::send(std::span<const std::byte> message) {
  peer_.put({.kind = shm::CellKind::send, .connection = connection_, .body = {message.begin(), message.end()}});
  peer_.ring();
}

void HalfSender::begin(std::span<const std::byte> beginning, std::size_t bytes) {
  const std::uint64_t before = begun_.empty() ? 0 : begun_.size() * begun_.front().bytes.size();
  if (before + bytes > shm::kBulkBytes) throw std::runtime_error("room in the bulk ring is not waited for here");
  shm::AnnounceBody body{};  // no spans and no pushing: it has to come in pieces
  body.length = bytes;
  peer_.put({.kind = shm::CellKind::announce,
             .connection = connection_,
             .aux = static_cast<std::uint32_t>(begun_.size()),
             .body = bytes_of(body)});
  peer_.ring();
  begun_.push_back({.bytes = {beginning.begin(), beginning.end()}});
  begun_.back().bytes.resize(bytes);
}

void HalfSender::stand_by() {
  listener_ = std::thread([this] { listen(); });
}

void HalfSender::leave() {
  leaves_ = true;
  if (listener_.joinable()) listener_.join();
  peer_.hang_up();
}

void HalfSender::listen() {
  while (!leaves_) {
    take_one();
    for (std::uint32_t i = 0; i < begun_.size() && goes_on_; ++i) {
      while (begun_[i].wanted && begun_[i].sent < begun_[i].bytes.size()) send_piece(i);
    }
  }
}

// What the receiver says, if it says something soon. That a message is wanted is all that matters here.
void HalfSender::take_one() {
  const auto said = peer_.take(std::chrono::milliseconds(5));
  if (!said || said->kind != shm::CellKind::clear_to_send || said->aux >= begun_.size()) return;
  begun_[said->aux].wanted = true;
  send_piece(said->aux);
}

void HalfSender::send_piece(std::uint32_t number) {
  Begun& message = begun_[number];
  const std::size_t count = std::min<std::size_t>(message.bytes.size() - message.sent, shm::kInlineBytesMax);
  const auto from = message.bytes.begin() + static_cast<std::ptrdiff_t>(message.sent);
  std::copy_n(from, count, peer_.outbound().bulk().begin() + static_cast<std::ptrdiff_t>(position_));
  peer_.put({.kind = shm::CellKind::piece,
             .length = static_cast<std::uint32_t>(count),
             .connection = connection_,
             .aux = number,
             .body = bytes_of(shm::PieceBody{.position = position_})});
  peer_.ring();
  message.sent += count;
  position_ += (count + shm::kCellBytes - 1) / shm::kCellBytes * shm::kCellBytes;
}

}  // namespace anydat::test
