// SPDX-License-Identifier: BSD-3-Clause
#include "fake_service.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace anydat::test {

FakeService::FakeService(Random& random) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    qualifier_ = 20'000 + random.below(10'000);
    const std::string name = raw_service_name(qualifier_);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 && ::listen(socket_.get(), 16) == 0) {
      return;
    }
  }
  throw std::runtime_error("no free name for a service point");
}

RawPeer FakeService::accept() {
  pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  Fd fd;
  if (::poll(&waiting, 1, static_cast<int>(patience().count())) > 0) {
    fd = Fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  if (!fd) {
    throw std::runtime_error("the client did not come");
  }
  return RawPeer(std::move(fd));
}

bool welcome(RawPeer& peer) {
  return welcome(peer, make_region_table());
}

bool welcome(RawPeer& peer, const Fd& regions) {
  if (!peer.hear() || !peer.greet(shm::GreetingKind::welcome)) {
    return false;
  }
  const auto attach = peer.hear();
  if (!attach || !attach->descriptor) {
    return false;
  }
  const Fd own = make_segment({});
  RawSegment outbound(attach->descriptor.get());
  RawSegment inbound(own.get());
  peer.show_memory(inbound);
  peer.use(std::move(inbound), std::move(outbound));
  return peer.greet(shm::GreetingKind::attached, {own.get(), regions.get(), make_marks().get()});
}

std::uint32_t asked(RawPeer& peer) {
  if (!welcome(peer)) {
    throw std::runtime_error("the client did not keep to the handshake");
  }
  const auto request = peer.take();
  if (!request || request->kind != shm::CellKind::connect) {
    throw std::runtime_error("the client did not ask for a connection");
  }
  shm::ConnectBody body{};
  std::memcpy(&body, request->body.data(), sizeof body);
  return body.connection;
}

RawCell acceptance(std::uint32_t connection, std::uint32_t private_data_bytes) {
  shm::AcceptBody body{};
  body.connection = kFakeConnection;
  body.private_data_bytes = private_data_bytes;
  return {.kind = shm::CellKind::accept, .connection = connection, .body = bytes_of(body)};
}

}  // namespace anydat::test
