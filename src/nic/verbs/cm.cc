// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/cm.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic/budget.h"

namespace anydat::nic::verbs {

namespace {

// The kernel takes no notice of a neighbour whose answer comes before the question is on its list, and looks again when
// the time of the question is over: so many short ones.
constexpr int kResolveAddressMs = 200;

}  // namespace

Address address_of(const sockaddr* from) {
  Address address{};
  if (from->sa_family == AF_INET6) {
    std::memcpy(&address.v6, from, sizeof address.v6);
    address.v6.sin6_port = 0;
  } else {
    std::memcpy(&address.v4, from, sizeof address.v4);
    address.v4.sin_port = 0;
  }
  return address;
}

std::uint64_t port_of(const sockaddr* from) {
  if (from->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(from)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(from)->sin_port);
}

sockaddr_storage socket_address(const Address& address, std::uint64_t port) {
  sockaddr_storage result{};
  if (address.generic.sa_family == AF_INET6) {
    sockaddr_in6 v6 = address.v6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&result, &v6, sizeof v6);
  } else {
    sockaddr_in v4 = address.v4;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&result, &v4, sizeof v4);
  }
  return result;
}

bool resolve_address(rdma_cm_id* id, const Address& local, const Address& remote, std::uint16_t port) {
  // A device reaches itself by its own address only.
  sockaddr_storage to = socket_address(is_loopback(remote) ? local : remote, port);
  return rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kResolveAddressMs) == 0;
}

ConnectFailure failure_of(int error) {
  return error == ECONNREFUSED || error == ECONNRESET ? ConnectFailure::refused : ConnectFailure::unreachable;
}

bool is_loopback(const Address& address) {
  if (address.generic.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
  return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
}

void CmEvents::ready(std::uint32_t) {
  rdma_cm_event* event = nullptr;
  // The descriptor stays readable while there are more.
  for (int i = 0; i < budget::kCmEventsPerTurn && get_event(channel_.get(), &event) == 0; ++i) {
    const rdma_conn_param& parameters = event->param.conn;
    CmEvent copy;
    copy.type = event->event;
    copy.status = event->status;
    copy.id = event->id;
    copy.responder_resources = parameters.responder_resources;
    copy.initiator_depth = parameters.initiator_depth;
    copy.length = parameters.private_data ? std::min<std::size_t>(parameters.private_data_len, copy.bytes.size()) : 0;
    if (copy.length > 0) std::memcpy(copy.bytes.data(), parameters.private_data, copy.length);
    rdma_cm_id* const to = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
    auto* const handler = static_cast<CmHandler*>(to->context);
    // Acknowledged first, since an identifier with events that are not cannot be destroyed.
    rdma_ack_cm_event(event);
    if (handler) handler->on_cm_event(copy);
  }
}

}  // namespace anydat::nic::verbs
