// SPDX-License-Identifier: BSD-3-Clause
#include "common/connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "common/error.h"

namespace tools {
namespace {

using Clock = std::chrono::steady_clock;

DAT_TIMEOUT microseconds(Timeout timeout) {
  constexpr Timeout kLongest{DAT_TIMEOUT_INFINITE - 1};
  return static_cast<DAT_TIMEOUT>(std::clamp(timeout, Timeout{1}, kLongest).count());
}

DAT_PVOID private_pointer(Bytes bytes) {
  return bytes.empty() ? nullptr : const_cast<std::byte*>(bytes.data());  // only read, as the call's page promises
}

// What an attempt that failed most likely ran into, for a reader who does not know the event names.
std::string_view reason(DAT_EVENT_NUMBER number) {
  switch (number) {
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      return ": the server refused";
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      return ": nobody serves there";
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      return ": the server did not answer in time";
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      return ": the host cannot be reached";
    default:
      return "";
  }
}

DAT_CONN_QUAL parse_qualifier(std::string_view text) {
  DAT_CONN_QUAL value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0)
    throw Error(fmt::format("'{}' is not a connection qualifier (a number of up to 64 bits, and not 0)", text));
  return value;
}

}  // namespace

bool wait_event(DAT_EVD_HANDLE evd, Timeout timeout, DAT_EVENT& event) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<Timeout>(deadline - Clock::now());
    DAT_COUNT more = 0;
    const DAT_RETURN status = dat_evd_wait(evd, microseconds(left), 1, &event, &more);
    if (status == DAT_SUCCESS) return true;
    const bool interrupted = DAT_GET_TYPE(status) == DAT_INTERRUPTED_CALL;
    if (!interrupted && DAT_GET_TYPE(status) != DAT_TIMEOUT_EXPIRED) fail(status, "dat_evd_wait");
    if (Clock::now() >= deadline) return false;
  }
}

std::uint64_t events_of(DAT_EVD_HANDLE evd) {
  std::array<ANYDAT_COUNTER, 16> counters;
  DAT_COUNT count = 0;
  if (anydat_get_counters(evd, static_cast<DAT_COUNT>(counters.size()), counters.data(), &count) != DAT_SUCCESS)
    return 0;
  for (const ANYDAT_COUNTER& counter : std::span(counters).first(std::min<std::size_t>(count, counters.size()))) {
    if (std::string_view(counter.name) == "events") return counter.value;
  }
  return 0;
}

Peer resolve_peer(const std::string& text, DAT_CONN_QUAL default_qualifier) {
  std::string host = text;
  Peer peer;
  peer.qualifier = default_qualifier;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) throw Error(fmt::format("'{}' lacks the closing bracket of its address", text));
    host = text.substr(1, close - 1);
    if (close + 1 < text.size()) {
      if (text[close + 1] != ':') throw Error(fmt::format("'{}' has text after the address that is no :QUAL", text));
      peer.qualifier = parse_qualifier(std::string_view(text).substr(close + 2));
    }
  } else if (const auto colon = text.find(':'); colon != std::string::npos && colon == text.rfind(':')) {
    host = text.substr(0, colon);
    peer.qualifier = parse_qualifier(std::string_view(text).substr(colon + 1));
  }

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0)
    throw Error(fmt::format("host '{}' has no address: {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::memcpy(&peer.address, found->ai_addr, found->ai_addrlen);
  peer.text = fmt::format("{}:{}", address_text(found->ai_addr), peer.qualifier);
  return peer;
}

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address == nullptr) return text;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return text;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return fmt::format("[{}]", text);
  }
  return fmt::format("address family {}", address->sa_family);
}

Listener::Listener(const Adapter& adapter, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qualifier) : qualifier_(qualifier) {
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  if (qualifier == 0) {
    check(dat_psp_create_any(adapter.ia(), &qualifier_, evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
  } else {
    check(dat_psp_create(adapter.ia(), qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp),
          fmt::format("listening on qualifier {}", qualifier));
  }
  psp_ = Psp(psp);
}

void begin_connect(DAT_EP_HANDLE ep, const Peer& peer, Timeout timeout, Bytes private_data) {
  sockaddr_storage address = peer.address;
  check(dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), peer.qualifier, microseconds(timeout),
                       static_cast<DAT_COUNT>(private_data.size()), private_pointer(private_data), DAT_QOS_BEST_EFFORT,
                       DAT_CONNECT_DEFAULT_FLAG),
        fmt::format("connecting to {}", peer.text));
}

Bytes await_connected(DAT_EVD_HANDLE connect_evd, const Peer& peer, Timeout timeout, std::vector<DAT_EVENT>& early) {
  DAT_EVENT event{};
  // The library reports the time-out itself; the second's grace only guards against a report that never comes. A failed
  // attempt flushes the receives that were posted before (EP-SM-11 to -14); on a shared dispatcher they come first.
  for (;;) {
    if (!wait_event(connect_evd, timeout + std::chrono::seconds(1), event))
      throw Error(fmt::format("connecting to {} gave no answer at all", peer.text));
    if (event.event_number != DAT_DTO_COMPLETION_EVENT) break;
    if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) early.push_back(event);
  }
  if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
    throw Error(fmt::format("connecting to {} ended in {}{}", peer.text, event_name(event.event_number),
                            reason(event.event_number)));
  const auto& data = event.event_data.connect_event_data;
  return {static_cast<const std::byte*>(data.private_data), static_cast<std::size_t>(data.private_data_size)};
}

Bytes connect(DAT_EP_HANDLE ep, DAT_EVD_HANDLE connect_evd, const Peer& peer, Timeout timeout, Bytes private_data) {
  begin_connect(ep, peer, timeout, private_data);
  std::vector<DAT_EVENT> early;  // none, of a single connection
  return await_connected(connect_evd, peer, timeout, early);
}

Bytes request_data(DAT_CR_HANDLE cr) {
  DAT_CR_PARAM param{};
  check(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  return {static_cast<const std::byte*>(param.private_data), static_cast<std::size_t>(param.private_data_size)};
}

}  // namespace tools
