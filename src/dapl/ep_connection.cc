// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: connecting, disconnecting, and what the queue pair reports of it. With the engine held.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/private_data.h"
#include "dapl/pz.h"
#include "dapl/qualifier.h"
#include "dapl/srq.h"

namespace anydat::dapl {

namespace {

// EP-CONN-10: what can be told from the address alone.
DAT_RETURN read_address(const char* call, const DAT_SOCK_ADDR* given, nic::Address& address) {
  address = {};
  if (!given) return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED, "{}: the remote address is NULL", call);
  if (given->sa_family == AF_INET) {
    std::memcpy(&address.v4, given, sizeof address.v4);
    const std::uint32_t number = ntohl(address.v4.sin_addr.s_addr);
    if (number == INADDR_BROADCAST || IN_MULTICAST(number)) {
      return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED,
                  "{}: the remote address is a multicast or broadcast address", call);
    }
    if (number == INADDR_ANY || IN_BADCLASS(number)) {
      return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED, "{}: the remote address names no host", call);
    }
    return DAT_SUCCESS;
  }
  if (given->sa_family == AF_INET6) {
    std::memcpy(&address.v6, given, sizeof address.v6);
    if (IN6_IS_ADDR_MULTICAST(&address.v6.sin6_addr)) {
      return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED, "{}: the remote address is a multicast address",
                  call);
    }
    if (IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr)) {
      return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED, "{}: the remote address names no host", call);
    }
    return DAT_SUCCESS;
  }
  return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED,
              "{}: the remote address has family {}, neither AF_INET nor AF_INET6", call, given->sa_family);
}

DAT_EVENT_NUMBER event_of(nic::ConnectFailure why) {
  switch (why) {
    case nic::ConnectFailure::rejected_by_peer:
      return DAT_CONNECTION_EVENT_PEER_REJECTED;
    case nic::ConnectFailure::unreachable:
      return DAT_CONNECTION_EVENT_UNREACHABLE;
    case nic::ConnectFailure::timed_out:
      return DAT_CONNECTION_EVENT_TIMED_OUT;
    case nic::ConnectFailure::refused:
      break;
  }
  return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
}

}  // namespace

DAT_RETURN Ep::connect(DAT_IA_ADDRESS_PTR remote, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                       const void* private_data, DAT_QOS qos, DAT_CONNECT_FLAGS flags) {
  const char* call = "dat_ep_connect";
  nic::Address address;
  if (const DAT_RETURN rc = read_address(call, remote, address)) return rc;
  if (const DAT_RETURN rc = check_qualifier(call, qual, DAT_INVALID_ARG3)) return rc;
  std::span<const std::byte> data;
  if (const DAT_RETURN rc =
          read_private_data(call, ia().nic(), private_data_size, private_data, DAT_INVALID_ARG5, data))
    return rc;
  if ((flags & ~DAT_CONNECT_MULTIPATH_FLAG) != 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8, "{}: connect flags {:#x} have undefined bits", call,
                static_cast<unsigned>(flags));
  }
  if (flags != DAT_CONNECT_DEFAULT_FLAG) {
    return fail(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE, "{}: supports_multipath is FALSE", call);
  }
  return connect({call, address, qual, timeout, DAT_INVALID_ARG4, data, qos, {}});
}

DAT_RETURN Ep::dup_connect(const Ep& dup, DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const void* private_data,
                           DAT_QOS qos) {
  const char* call = "dat_ep_dup_connect";
  std::span<const std::byte> data;
  if (const DAT_RETURN rc =
          read_private_data(call, ia().nic(), private_data_size, private_data, DAT_INVALID_ARG4, data))
    return rc;
  if (dup.state() != DAT_EP_STATE_CONNECTED) return dup.wrong_state(call);
  const nic::ServicePointName& reached = dup.queue_pair().reached();
  if (reached.qual == 0) {
    return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
                "{}: ep_dup_handle was connected by accepting a request, so there is no service point to ask", call);
  }
  return connect(
      {call, dup.queue_pair().remote_address(), reached.qual, timeout, DAT_INVALID_ARG3, data, qos, reached.adapter});
}

DAT_RETURN Ep::connect(const Request& request) {
  const char* call = request.call;
  if (request.timeout == 0) return fail(DAT_INVALID_PARAMETER, request.timeout_argument, "{}: timeout is 0", call);
  const std::uint32_t supported = ia().nic().info().qos_supported;
  if ((static_cast<unsigned>(request.qos) & ~supported) != 0) {
    return fail(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE, "{}: QoS {:#x} is not within the supported {:#x}", call,
                static_cast<unsigned>(request.qos), supported);
  }
  if (state() != DAT_EP_STATE_UNCONNECTED) return wrong_state(call);
  if (!parts_.connect) {
    return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN, "{}: the endpoint has no connect EVD", call);
  }
  if (!parts_.pz) {
    return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY, "{}: the endpoint has no protection zone", call);
  }
  const base::Nanoseconds deadline = request.timeout == DAT_TIMEOUT_INFINITE
                                         ? base::kForever
                                         : base::now_ns() + static_cast<base::Nanoseconds>(request.timeout) * 1000;
  private_data_.reserve(nic::kPrivateDataMax);  // the peer's, for when it answers
  const nic::ConnectParameters parameters{
      request.remote, request.qual, deadline, request.private_data, static_cast<std::uint32_t>(request.qos),
      request.adapter};
  switch (queue_pair_->connect(parameters)) {
    case nic::Status::ok:
      break;
    case nic::Status::unreachable:
      return fail(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
                  "{}: no wire of this adapter reaches the address", call);
    default:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "{}: no memory or no port for the attempt", call);
  }
  set_state(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  return DAT_SUCCESS;
}

DAT_RETURN Ep::disconnect(DAT_CLOSE_FLAGS flags) {
  const char* call = "dat_ep_disconnect";
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: flags {:#x} are neither abrupt nor graceful", call,
                static_cast<unsigned>(flags));
  }
  switch (state()) {
    case DAT_EP_STATE_CONNECTED:
      set_state(DAT_EP_STATE_DISCONNECT_PENDING);
      break;
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
    case DAT_EP_STATE_COMPLETION_PENDING:
    case DAT_EP_STATE_DISCONNECT_PENDING:
      break;
    case DAT_EP_STATE_DISCONNECTED:
      return DAT_SUCCESS;  // EP-DISC-12
    default:
      return wrong_state(call);
  }
  queue_pair_->disconnect(flags == DAT_CLOSE_GRACEFUL_FLAG);
  return DAT_SUCCESS;
}

DAT_RETURN Ep::reset() {
  if (state() == DAT_EP_STATE_UNCONNECTED) return DAT_SUCCESS;  // EP-RESET-2
  if (state() != DAT_EP_STATE_DISCONNECTED) return wrong_state("dat_ep_reset");
  queue_pair_->reset();
  private_data_.clear();
  set_state(DAT_EP_STATE_UNCONNECTED);
  return DAT_SUCCESS;
}

std::optional<DAT_RETURN> Ep::free() {
  switch (state()) {
    case DAT_EP_STATE_RESERVED:
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
    case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
      return wrong_state("dat_ep_free");
    default:
      break;
  }
  if (!cut()) return std::nullopt;
  ia().retire(*this);
  return DAT_SUCCESS;
}

void Ep::shut_down() {
  if (queue_pair_) queue_pair_->destroy();
  if (!parts_taken_) return;
  // Frees the PZ, the EVDs and the SRQ for others (EP-FREE-6).
  take_parts({}, attr_);
  if (srq_) srq_->detach();
}

// ---- reports of the queue pair

bool Ep::report(DAT_EVENT_NUMBER number) {
  if (!parts_.connect) return true;  // EVM-5
  DAT_EVENT event{};
  event.event_number = number;
  event.evd_handle = parts_.connect->handle();
  DAT_CONNECTION_EVENT_DATA& data = event.event_data.connect_event_data;
  data.ep_handle = handle();
  if (number == DAT_CONNECTION_EVENT_ESTABLISHED) {
    data.private_data_size = static_cast<DAT_COUNT>(private_data_.size());
    data.private_data = private_data_.empty() ? nullptr : private_data_.data();
  }
  return parts_.connect->push(event);
}

void Ep::on_established(std::span<const std::byte> private_data) {
  set_state(DAT_EP_STATE_CONNECTED);  // EP-SM-24: before the event
  // They stay until the endpoint is reset or freed (PD-6).
  private_data_.assign(private_data.begin(), private_data.end());
  if (!report(DAT_CONNECTION_EVENT_ESTABLISHED)) queue_pair_->disconnect(false);  // EP-SM-26
}

void Ep::on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> private_data) {
  set_state(DAT_EP_STATE_DISCONNECTED);
  private_data_.assign(private_data.begin(), private_data.end());  // as those of an acceptance; 1.2 shows none (EVT-26)
  report(event_of(why));
}

void Ep::on_accept_failed() {
  set_state(DAT_EP_STATE_DISCONNECTED);
  report(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

void Ep::on_closed(bool broken) {
  // Ruling R40: once a disconnect was asked for, its event is DISCONNECTED whatever happened meanwhile.
  const bool asked = state() == DAT_EP_STATE_DISCONNECT_PENDING;
  set_state(DAT_EP_STATE_DISCONNECTED);
  report(broken && !asked ? DAT_CONNECTION_EVENT_BROKEN : DAT_CONNECTION_EVENT_DISCONNECTED);
  // All that it took from the SRQ has completed or been flushed, and with the engine held the two events of all
  // endpoints come in the same order.
  if (srq_ && ia().habits().broken_after_disconnect) {
    ia().post_async(*this, DAT_ASYNC_ERROR_EP_BROKEN, DAT_EP_TRANSFER_TO_ERROR);
  }
}

void Ep::on_soft_watermark() {
  // EP-WM-3, ruling R26: the number of an endpoint; the reason tells that nothing is broken.
  ia().post_async(*this, DAT_ASYNC_ERROR_EP_BROKEN, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

}  // namespace anydat::dapl
