// SPDX-License-Identifier: BSD-3-Clause
// What the verbs adapter knows of connection management (rdma_cm): events as values, addresses, and the way to them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nic/adapter.h"
#include "nic/loop.h"
#include "nic/verbs/cm_head.h"
#include "nic/verbs/resources.h"
#include "os/clock.h"

namespace anydat::nic::verbs {

// An event that has been taken off the channel; the channel's own is acknowledged already, so that identifiers may be
// destroyed.
struct CmEvent {
  rdma_cm_event_type type;
  int status;
  rdma_cm_id* id;  // of a request: the new one
  std::uint8_t responder_resources;
  std::uint8_t initiator_depth;
  std::array<std::byte, 512> bytes;
  std::size_t length;
  std::span<const std::byte> private_data() const { return std::span(bytes).first(length); }
};

// What the context of an identifier points to.
class CmHandler {
 public:
  virtual ~CmHandler() = default;
  virtual void on_cm_event(const CmEvent& event) = 0;
  // rdma_connect(), called in another thread (KernelCalls), has come back: the identifier may be destroyed from now on.
  virtual void on_dialled(rdma_cm_id*, int /*error*/) {}
};

// Takes the events of a channel and hands each to whom it concerns. With the engine held.
class CmEvents final : public FdHandler {
 public:
  explicit CmEvents(const CmChannel& channel) : channel_(channel) {}
  void ready(std::uint32_t events) override;

 private:
  const CmChannel& channel_;
};

Address address_of(const sockaddr* from);  // without the port
std::uint64_t port_of(const sockaddr* from);
sockaddr_storage socket_address(const Address& address, std::uint64_t port);
bool is_loopback(const Address& address);

// How long the way to an address is looked for.
inline constexpr os::Nanoseconds kResolve = 5 * os::kNsPerSecond;
// Asks for the way from one of the device's addresses to a port. ADDR_ERROR with ETIMEDOUT may follow, long before
// kResolve is over: then ask again.
bool resolve_address(rdma_cm_id* id, const Address& local, const Address& remote, std::uint16_t port);
ConnectFailure failure_of(int error);

}  // namespace anydat::nic::verbs
