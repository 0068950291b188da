// SPDX-License-Identifier: BSD-3-Clause
// The passive side of connection set-up: a socket that a peer called on, and the request that it made.
#pragma once

#include <array>
#include <memory>

#include "nic/adapter.h"
#include "nic/refusal.h"
#include "nic/soft/strangers.h"
#include "nic/soft/wire/iwarp/format/mpa.h"
#include "nic/wanted.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::iwarp {

class Fabric;

// Rejects what was asked for on this socket, whatever becomes of it.
void send_rejection(int fd, const StartUp& asked, std::span<const std::byte> private_data);

// A peer that has called and not yet said what it wants. It may not take for ever.
class Caller final : public FdHandler, public Stranger {
 public:
  Caller(Fabric& fabric, os::UniqueFd socket, const Address& source, ConnQual qual);
  ~Caller() override;
  bool begin();
  void ready(std::uint32_t events) override;
  void turn_out() override;

 private:
  bool hear();  // false: it is over
  void ask(const StartUp& said);
  bool is_ours(WantedParsed parsed, const Wanted& wanted, const Address& local) const;

  Fabric& fabric_;
  os::UniqueFd socket_;
  const Address source_;
  const ConnQual qual_;
  std::array<std::byte, kStartUpBytesMax> heard_;
  std::size_t count_ = 0;
  bool watched_ = false;
  Timer patience_;
};

// A connection request that has no answer yet. With the engine held.
class TcpRequest final : public ConnectionRequest, public Stranger {
 public:
  TcpRequest(Fabric& fabric, os::UniqueFd socket, const Address& source, ConnQual qual, const StartUp& asked);
  TcpRequest(TcpRequest& handed_off, ConnQual to);  // takes its place
  ~TcpRequest() override;
  bool complete() const { return static_cast<bool>(socket_); }
  // To the service point, which owns it from now on, or does not want it.
  static void deliver(std::unique_ptr<TcpRequest> request, ListenerEvents& to);

  const Address& remote_address() const override { return remote_; }
  std::uint64_t remote_port() const override;
  const Address& local_address() const override { return local_; }
  std::span<const std::byte> private_data() const override { return std::span(data_).first(data_bytes_); }
  void accept(QueuePair& queue_pair, std::span<const std::byte> private_data) override;
  void reject(std::span<const std::byte> private_data) override;
  Status hand_off(ConnQual qual) override;
  void refuse();
  void say_here();  // to a peer that has only asked whose the port is
  void turn_out() override;

 private:
  void answer(const StartUp& frame);
  bool socket_is_ours() const;
  void turn_away(std::span<const std::byte> private_data);

  Fabric& fabric_;
  os::UniqueFd socket_;  // until there is an answer
  ConnQual qual_;
  StartUp asked_;  // without its private data
  Address local_{};
  Address remote_{};
  std::array<std::byte, kStartUpDataBytesMax> data_;
  std::size_t data_bytes_ = 0;
};

}  // namespace anydat::nic::soft::iwarp
