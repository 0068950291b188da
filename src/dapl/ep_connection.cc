// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: connecting, disconnecting, and what the queue pair reports of it. With the engine held.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/private_data.h"
#include "dapl/pz.h"
#include "dapl/qualifier.h"
#include "dapl/srq.h"

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
constexpr base::Nanoseconds kPatience = 100'000'000;

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

Error Ep::connect(const sockaddr* remote, nic::ConnQual qual, Microseconds timeout, Count private_data_size,
                  const void* private_data, Qos qos, ConnectFlags flags) {
  const char* call = "dat_ep_connect";
  nic::Address address;
  if (const Error error = read_address(call, remote, address)) return error;
  if (const Error error = check_qualifier(call, qual, Argument::remote_conn_qual)) return error;
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  if ((flags & ~kMultipath) != 0) {
    return fail(Argument::connect_flags, "{}: connect flags {:#x} have undefined bits", call, flags);
  }
  if (flags != 0) {
    return fail(Code::model_not_supported, Detail::none, "{}: supports_multipath is FALSE", call);
  }
  return connect({call, address, qual, timeout, data, qos, {}});
}

Error Ep::common_connect(const sockaddr* remote, Microseconds timeout, Count private_data_size,
                         const void* private_data) {
  const char* call = "dat_ep_common_connect";
  nic::Address address;
  if (const Error error = read_address(call, remote, address)) return error;
  const in_port_t port = ntohs(address.generic.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
  if (port == 0)
    return fail(Code::invalid_address, Detail::address_malformed, "{}: the remote address has no port", call);
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  if (const Error error = connect({call, address, port, timeout, data, kBestEffort, {}})) return error;
  note_comm({address.generic.sa_family, SOCK_STREAM, IPPROTO_TCP});
  return kSuccess;
}

Error Ep::dup_connect(const Ep& dup, Microseconds timeout, Count private_data_size, const void* private_data, Qos qos) {
  const char* call = "dat_ep_dup_connect";
  if (!dup.alive()) return freed_meanwhile(call, "endpoint to be duplicated", Detail::handle_ep);
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  if (!dup.state_machine().allows(EpStep::duplicate)) return dup.state_machine().wrong_state(call);
  const nic::ServicePointName& reached = dup.queue_pair().names().reached;
  if (reached.qual == 0) {
    return fail(Code::invalid_state, Detail::ep_connected,
                "{}: ep_dup_handle was connected by accepting a request, so there is no service point to ask", call);
  }
  return connect({call, dup.queue_pair().names().remote, reached.qual, timeout, data, qos, reached.adapter});
}

Error Ep::connect(const Request& request) {
  const char* call = request.call;
  if (request.timeout == 0) return fail(Argument::timeout, "{}: timeout is 0", call);
  const std::uint32_t supported = ia().nic().info().qos_supported;
  if ((request.qos & ~supported) != 0) {
    return fail(Code::model_not_supported, Detail::none, "{}: QoS {:#x} is not within the supported {:#x}", call,
                request.qos, supported);
  }
  if (!state_machine().allows(EpStep::connect)) return state_machine().wrong_state(call);
  if (!configuration_.parts().connect) {
    return fail(Code::invalid_handle, Detail::handle_evd_conn, "{}: the endpoint has no connect EVD", call);
  }
  if (!configuration_.parts().pz) {
    return fail(Code::invalid_state, Detail::ep_not_ready, "{}: the endpoint has no protection zone", call);
  }
  const base::Nanoseconds deadline = request.timeout == kInfinite
                                         ? base::kForever
                                         : base::now_ns() + static_cast<base::Nanoseconds>(request.timeout) * 1000;
  private_data_.reserve(nic::kPrivateDataMax);  // the peer's, for when it answers
  const nic::ConnectParameters parameters{request.remote,
                                          request.qual,
                                          deadline,
                                          request.private_data,
                                          request.qos,
                                          request.adapter,
                                          ia().habits().early_connects ? kPatience : 0};
  switch (queue_pair().connect(parameters)) {
    case nic::Status::ok:
      break;
    case nic::Status::unreachable:
      return fail(Code::invalid_address, Detail::address_unreachable, "{}: no wire of this adapter reaches the address",
                  call);
    default:
      return fail(Code::insufficient_resources, Detail::memory, "{}: no memory or no port for the attempt", call);
  }
  state_machine().apply(EpStep::connect);
  connects_.add();
  ia().counters().requests_sent.add();
  return kSuccess;
}

Error Ep::disconnect(CloseFlags flags) {
  const char* call = "dat_ep_disconnect";
  if (flags != CloseFlags::abrupt && flags != CloseFlags::graceful) {
    return fail(Argument::close_flags, "{}: flags {:#x} are neither abrupt nor graceful", call,
                static_cast<unsigned>(flags));
  }
  const bool was_connected = state() == EpState::connected;
  if (!state_machine().apply(EpStep::disconnect)) return state_machine().wrong_state(call);
  if (state() == EpState::disconnected) return kSuccess;
  disconnects_.add();
  if (was_connected) ia().counters().disconnects_sent.add();
  queue_pair().disconnect(flags == CloseFlags::graceful);
  return kSuccess;
}

Error Ep::reset() {
  if (!state_machine().allows(EpStep::reset)) return state_machine().wrong_state("dat_ep_reset");
  if (state() == EpState::unconnected) return kSuccess;
  queue_pair().reset();
  private_data_.clear();
  comm_ = {};
  state_machine().apply(EpStep::reset);
  return kSuccess;
}

std::optional<Error> Ep::free() {
  if (!state_machine().allows(EpStep::free)) return state_machine().wrong_state("dat_ep_free");
  if (!cut()) return std::nullopt;
  ia().retire(*this);
  return kSuccess;
}

void Ep::shut_down() {
  if (!posts_.queue_pair()) return;  // nor has it got its parts
  queue_pair().destroy();
  // Frees the PZ, the EVDs and the SRQ for others (EP-FREE-6).
  configuration_.release();
  if (srq_) srq_->detach();
}

// ---- reports of the queue pair; one that the state does not expect changes nothing (EP-SM-23)

bool Ep::report(EventKind kind) {
  if (!configuration_.parts().connect) return true;  // EVM-5
  Event event{};
  event.kind = kind;
  event.object = handle();
  if (kind == EventKind::established || kind == EventKind::peer_rejected) {
    event.detail = static_cast<std::uint32_t>(private_data_.size());
    event.pointer = private_data_.empty() ? nullptr : private_data_.data();
  }
  return configuration_.parts().connect->push(event);
}

void Ep::on_established(std::span<const std::byte> private_data) {
  const bool active = state() == EpState::active_connection_pending;
  if (!state_machine().apply(EpStep::established)) return;
  (active ? ia().counters().connected : ia().counters().accepted_connected).add();
  // They stay until the endpoint is reset or freed (PD-6).
  private_data_.assign(private_data.begin(), private_data.end());
  if (!report(EventKind::established)) queue_pair().disconnect(false);  // EP-SM-26
}

void Ep::on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> private_data) {
  if (!state_machine().apply(EpStep::connect_failed)) return;
  counter_of(why, ia().counters()).add();
  private_data_.assign(private_data.begin(), private_data.end());  // as those of an acceptance
  report(event_of(why));
}

void Ep::on_accept_failed() {
  if (!state_machine().apply(EpStep::accept_failed)) return;
  ia().counters().accepts_failed.add();
  report(EventKind::accept_completion_error);
}

void Ep::on_closed(bool broken) {
  // Ruling R40: once a disconnect was asked for, its event is DISCONNECTED whatever happened meanwhile.
  const bool asked = state() == EpState::disconnect_pending;
  const bool was_connected = state() == EpState::connected;
  if (!state_machine().apply(EpStep::closed)) return;
  if (was_connected) (broken ? ia().counters().broken : ia().counters().disconnects_received).add();
  report(broken && !asked ? EventKind::broken : EventKind::disconnected);
  // All that it took from the SRQ has completed or been flushed, and with the engine held the two events of all
  // endpoints come in the same order.
  if (srq_ && ia().habits().broken_after_disconnect) {
    ia().post_async(*this, EventKind::ep_broken, async_reason::kEpTransferToError);
  }
}

void Ep::on_soft_watermark() {
  // EP-WM-3, ruling R26: the number of an endpoint; the reason tells that nothing is broken.
  ia().post_async(*this, EventKind::ep_broken, async_reason::kEpSoftHighWatermark);
}

}  // namespace anydat::dapl
