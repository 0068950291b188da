// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_connection.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "dapl/check_qualifier.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/private_data.h"

namespace anydat::dapl {

namespace {

// EP-CONN-10: what can be told from the address alone.
Error read_address(const char* call, const sockaddr* given, nic::Address& address) {
  address = {};
  if (!given) return fail(Code::invalid_address, Detail::address_malformed, "{}: the remote address is NULL", call);
  if (given->sa_family == AF_INET) {
    std::memcpy(&address.v4, given, sizeof address.v4);
    const std::uint32_t number = ntohl(address.v4.sin_addr.s_addr);
    if (number == INADDR_BROADCAST || IN_MULTICAST(number)) {
      return fail(Code::invalid_address, Detail::address_unsupported,
                  "{}: the remote address is a multicast or broadcast address", call);
    }
    if (number == INADDR_ANY || IN_BADCLASS(number)) {
      return fail(Code::invalid_address, Detail::address_malformed, "{}: the remote address names no host", call);
    }
    return kSuccess;
  }
  if (given->sa_family == AF_INET6) {
    std::memcpy(&address.v6, given, sizeof address.v6);
    if (IN6_IS_ADDR_MULTICAST(&address.v6.sin6_addr)) {
      return fail(Code::invalid_address, Detail::address_unsupported, "{}: the remote address is a multicast address",
                  call);
    }
    if (IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr)) {
      return fail(Code::invalid_address, Detail::address_malformed, "{}: the remote address names no host", call);
    }
    return kSuccess;
  }
  return fail(Code::invalid_address, Detail::address_malformed,
              "{}: the remote address has family {}, neither AF_INET nor AF_INET6", call, given->sa_family);
}

// Habits::early_connects.
constexpr os::Nanoseconds kPatience = 100'000'000;

base::Counter& counter_of(nic::ConnectFailure why, IaCounters& counters) {
  switch (why) {
    case nic::ConnectFailure::rejected_by_peer:
      return counters.rejected_by_peer;
    case nic::ConnectFailure::unreachable:
      return counters.unreachable;
    case nic::ConnectFailure::timed_out:
      return counters.timed_out;
    case nic::ConnectFailure::refused:
      break;
  }
  return counters.refused;
}

EventKind event_of(nic::ConnectFailure why) {
  switch (why) {
    case nic::ConnectFailure::rejected_by_peer:
      return EventKind::peer_rejected;
    case nic::ConnectFailure::unreachable:
      return EventKind::unreachable;
    case nic::ConnectFailure::timed_out:
      return EventKind::timed_out;
    case nic::ConnectFailure::refused:
      break;
  }
  return EventKind::non_peer_rejected;
}

}  // namespace

Error EpConnection::connect(const sockaddr* remote, nic::ConnQual qual, Microseconds timeout, Count private_data_size,
                            const void* private_data, Qos qos, ConnectFlags flags) {
  const char* call = "dat_ep_connect";
  nic::Address address;
  if (const Error error = read_address(call, remote, address)) return error;
  if (const Error error = check_qualifier(call, qual, Argument::remote_conn_qual)) return error;
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ep_.ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  if ((flags & ~kMultipath) != 0) {
    return fail(Argument::connect_flags, "{}: connect flags {:#x} have undefined bits", call, flags);
  }
  if (flags != 0) {
    return fail(Code::model_not_supported, Detail::none, "{}: supports_multipath is FALSE", call);
  }
  return connect({call, address, qual, timeout, data, qos, {}});
}

Error EpConnection::common_connect(const sockaddr* remote, Microseconds timeout, Count private_data_size,
                                   const void* private_data) {
  const char* call = "dat_ep_common_connect";
  nic::Address address;
  if (const Error error = read_address(call, remote, address)) return error;
  const in_port_t port = ntohs(address.generic.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
  if (port == 0)
    return fail(Code::invalid_address, Detail::address_malformed, "{}: the remote address has no port", call);
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ep_.ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  if (const Error error = connect({call, address, port, timeout, data, kBestEffort, {}})) return error;
  note_comm({address.generic.sa_family, SOCK_STREAM, IPPROTO_TCP});
  return kSuccess;
}

Error EpConnection::dup_connect(const Ep& dup, Microseconds timeout, Count private_data_size, const void* private_data,
                                Qos qos) {
  const char* call = "dat_ep_dup_connect";
  if (!dup.alive()) return freed_meanwhile(call, "endpoint to be duplicated", Detail::handle_ep);
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ep_.ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  if (!dup.state_machine().allows(EpStep::duplicate)) return dup.state_machine().wrong_state(call);
  const nic::ServicePointName& reached = dup.queue_pair().names().reached;
  if (reached.qual == 0) {
    return fail(Code::invalid_state, Detail::ep_connected,
                "{}: ep_dup_handle was connected by accepting a request, so there is no service point to ask", call);
  }
  return connect({call, dup.queue_pair().names().remote, reached.qual, timeout, data, qos, reached.adapter});
}

Error EpConnection::connect(const Request& request) {
  const char* call = request.call;
  if (request.timeout == 0) return fail(Argument::timeout, "{}: timeout is 0", call);
  const std::uint32_t supported = ep_.ia().nic().info().qos_supported;
  if ((request.qos & ~supported) != 0) {
    return fail(Code::model_not_supported, Detail::none, "{}: QoS {:#x} is not within the supported {:#x}", call,
                request.qos, supported);
  }
  if (!ep_.state_machine().allows(EpStep::connect)) return ep_.state_machine().wrong_state(call);
  if (!ep_.configuration().parts().connect) {
    return fail(Code::invalid_handle, Detail::handle_evd_conn, "{}: the endpoint has no connect EVD", call);
  }
  if (!ep_.configuration().parts().pz) {
    return fail(Code::invalid_state, Detail::ep_not_ready, "{}: the endpoint has no protection zone", call);
  }
  const os::Nanoseconds deadline =
      request.timeout == kInfinite ? os::kForever : os::now_ns() + static_cast<os::Nanoseconds>(request.timeout) * 1000;
  private_data_.reserve(nic::kPrivateDataMax);  // the peer's, for when it answers
  const nic::ConnectParameters parameters{request.remote,
                                          request.qual,
                                          deadline,
                                          request.private_data,
                                          request.qos,
                                          request.adapter,
                                          ep_.ia().habits().early_connects ? kPatience : 0};
  switch (ep_.queue_pair().connect(parameters)) {
    case nic::Status::ok:
      break;
    case nic::Status::unreachable:
      return fail(Code::invalid_address, Detail::address_unreachable, "{}: no wire of this adapter reaches the address",
                  call);
    default:
      return fail(Code::insufficient_resources, Detail::memory, "{}: no memory, descriptor or port for the attempt",
                  call);
  }
  ep_.state_machine().apply(EpStep::connect);
  connects_.add();
  ep_.ia().counters().requests_sent.add();
  return kSuccess;
}

Error EpConnection::disconnect(CloseFlags flags) {
  const char* call = "dat_ep_disconnect";
  if (flags != CloseFlags::abrupt && flags != CloseFlags::graceful) {
    return fail(Argument::close_flags, "{}: flags {:#x} are neither abrupt nor graceful", call,
                static_cast<unsigned>(flags));
  }
  const bool was_connected = ep_.state() == EpState::connected;
  if (!ep_.state_machine().apply(EpStep::disconnect)) return ep_.state_machine().wrong_state(call);
  if (ep_.state() == EpState::disconnected) return kSuccess;
  disconnects_.add();
  if (was_connected) ep_.ia().counters().disconnects_sent.add();
  ep_.queue_pair().disconnect(flags == CloseFlags::graceful);
  return kSuccess;
}

Error EpConnection::reset() {
  if (!ep_.state_machine().allows(EpStep::reset)) return ep_.state_machine().wrong_state("dat_ep_reset");
  if (ep_.state() == EpState::unconnected) return kSuccess;
  ep_.queue_pair().reset();
  private_data_.clear();
  comm_ = {};
  ep_.state_machine().apply(EpStep::reset);
  return kSuccess;
}

void EpConnection::offer(const nic::ConnectionRequest& request, nic::ConnQual local_port) {
  offered_ = {request.local_address(), request.remote_address(), local_port, request.remote_port()};
}

void EpConnection::name_ends(EpParameters& to) const {
  // EP-QUERY-5: the memory is the queue pair's, or ours.
  const nic::ConnectionNames& names = ep_.queue_pair().names();
  to.local_ia_address_ptr = &names.local.generic;
  to.local_port_qual = names.local_port;
  to.remote_ia_address_ptr = &names.remote.generic;
  to.remote_port_qual = names.remote_port;
  if (to.ep_state == EpState::passive_connection_pending || to.ep_state == EpState::tentative_connection_pending) {
    // EP-QUERY-3, EP-QUERY-4: the queue pair knows nothing of the request yet.
    to.local_ia_address_ptr = &offered_.local.generic;
    to.local_port_qual = offered_.local_port;
    to.remote_ia_address_ptr = &offered_.remote.generic;
    to.remote_port_qual = offered_.remote_port;
  }
}

// ---- reports of the queue pair; one that the state does not expect changes nothing (EP-SM-23)

bool EpConnection::report(EventKind kind) {
  if (!ep_.configuration().parts().connect) return true;  // EVM-5
  Event event{};
  event.kind = kind;
  event.object = ep_.handle();
  if (kind == EventKind::established || kind == EventKind::peer_rejected) {
    event.detail = static_cast<std::uint32_t>(private_data_.size());
    event.pointer = private_data_.empty() ? nullptr : private_data_.data();
  }
  return ep_.configuration().parts().connect->push(event);
}

void EpConnection::on_established(std::span<const std::byte> private_data) {
  const bool active = ep_.state() == EpState::active_connection_pending;
  if (!ep_.state_machine().apply(EpStep::established)) return;
  (active ? ep_.ia().counters().connected : ep_.ia().counters().accepted_connected).add();
  // They stay until the endpoint is reset or freed (PD-6).
  private_data_.assign(private_data.begin(), private_data.end());
  if (!report(EventKind::established)) ep_.queue_pair().disconnect(false);  // EP-SM-26
}

void EpConnection::on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> private_data) {
  if (!ep_.state_machine().apply(EpStep::connect_failed)) return;
  counter_of(why, ep_.ia().counters()).add();
  private_data_.assign(private_data.begin(), private_data.end());  // as those of an acceptance
  report(event_of(why));
}

void EpConnection::on_accept_failed() {
  if (!ep_.state_machine().apply(EpStep::accept_failed)) return;
  ep_.ia().counters().accepts_failed.add();
  report(EventKind::accept_completion_error);
}

void EpConnection::on_closed(bool broken) {
  // Ruling R40: once a disconnect was asked for, its event is DISCONNECTED whatever happened meanwhile.
  const bool asked = ep_.state() == EpState::disconnect_pending;
  const bool was_connected = ep_.state() == EpState::connected;
  if (!ep_.state_machine().apply(EpStep::closed)) return;
  if (was_connected) (broken ? ep_.ia().counters().broken : ep_.ia().counters().disconnects_received).add();
  report(broken && !asked ? EventKind::broken : EventKind::disconnected);
  // All that it took from the SRQ has completed or been flushed, and with the engine held the two events of all
  // endpoints come in the same order.
  if (ep_.srq() && ep_.ia().habits().broken_after_disconnect) {
    ep_.ia().post_async(ep_, EventKind::ep_broken, async_reason::kEpTransferToError);
  }
}

void EpConnection::on_soft_watermark() {
  // EP-WM-3, ruling R26: the number of an endpoint; the reason tells that nothing is broken.
  ep_.ia().post_async(ep_, EventKind::ep_broken, async_reason::kEpSoftHighWatermark);
}

}  // namespace anydat::dapl
