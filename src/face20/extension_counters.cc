// SPDX-License-Identifier: BSD-3-Clause
// The counters of the InfiniBand extension (chapter 13.3 of the rules): what the library counts of its objects, by the
// numbers that programs know. docs/counters.md says what each counts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdarg>
#include <optional>
#include <span>

#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "env/print.h"
#include "face/edge.h"
#include "face/objects.h"
#include "face20/extension.h"
#include "face20/ib_counter_names.h"

namespace anydat::face {

namespace {

using Values = std::span<DAT_UINT64>;

DAT_UINT64 made(const dapl::IaCounters& counters, dapl::HandleType type) {
  return counters.created[static_cast<std::size_t>(type)].get();
}
DAT_UINT64 freed(const dapl::IaCounters& counters, dapl::HandleType type) {
  return counters.freed[static_cast<std::size_t>(type)].get();
}

// What is not here is not there (D2-CNTR-4) and stays 0.
void read(dapl::Ia& ia, Values to) {
  using Type = dapl::HandleType;
  const dapl::IaCounters& c = ia.counters();
  to[DCNT_IA_PZ_CREATE] = made(c, Type::pz);
  to[DCNT_IA_PZ_FREE] = freed(c, Type::pz);
  to[DCNT_IA_LMR_CREATE] = made(c, Type::lmr);
  to[DCNT_IA_LMR_FREE] = freed(c, Type::lmr);
  to[DCNT_IA_RMR_CREATE] = made(c, Type::rmr);
  to[DCNT_IA_RMR_FREE] = freed(c, Type::rmr);
  to[DCNT_IA_PSP_CREATE_ANY] = c.psps_with_any_qualifier.get();
  to[DCNT_IA_PSP_CREATE] = made(c, Type::psp) - to[DCNT_IA_PSP_CREATE_ANY];
  to[DCNT_IA_PSP_FREE] = freed(c, Type::psp);
  to[DCNT_IA_RSP_CREATE] = made(c, Type::rsp);
  to[DCNT_IA_RSP_FREE] = freed(c, Type::rsp);
  to[DCNT_IA_EVD_CREATE] = made(c, Type::evd);
  to[DCNT_IA_EVD_FREE] = freed(c, Type::evd);
  to[DCNT_IA_EP_CREATE] = made(c, Type::ep);
  to[DCNT_IA_EP_FREE] = freed(c, Type::ep);
  to[DCNT_IA_SRQ_CREATE] = made(c, Type::srq);
  to[DCNT_IA_SRQ_FREE] = freed(c, Type::srq);
  to[DCNT_IA_SP_CR] = c.requests_delivered.get();
  to[DCNT_IA_SP_CR_ACCEPTED] = c.accepted.get();
  to[DCNT_IA_SP_CR_REJECTED] = c.rejected.get();
  to[DCNT_IA_ASYNC_ERROR] = c.other_errors.get();
  to[DCNT_IA_ASYNC_QP_ERROR] = c.ep_errors.get();
  to[DCNT_IA_ASYNC_CQ_ERROR] = c.evd_errors.get();
  to[DCNT_IA_CM_LISTEN] = c.listens.get();
  to[DCNT_IA_CM_REQ_TX] = c.requests_sent.get();
  to[DCNT_IA_CM_REQ_RX] = c.requests_received.get();
  to[DCNT_IA_CM_REP_TX] = c.accepted.get();
  to[DCNT_IA_CM_REP_RX] = c.connected.get();
  to[DCNT_IA_CM_USER_REJ_TX] = c.rejected.get();
  to[DCNT_IA_CM_USER_REJ_RX] = c.rejected_by_peer.get();
  to[DCNT_IA_CM_ACTIVE_EST] = c.connected.get();
  to[DCNT_IA_CM_PASSIVE_EST] = c.accepted_connected.get();
  to[DCNT_IA_CM_DREQ_TX] = c.disconnects_sent.get();
  to[DCNT_IA_CM_DREQ_RX] = c.disconnects_received.get();
  to[DCNT_IA_CM_ERR] = c.unreachable.get() + c.accepts_failed.get();
  to[DCNT_IA_CM_ERR_REFUSED] = c.refused.get();
  to[DCNT_IA_CM_ERR_RESET] = c.broken.get();
  to[DCNT_IA_CM_ERR_TIMEOUT] = c.timed_out.get();
  to[DCNT_IA_CM_ERR_REJ_TX] = c.requests_refused.get();
}

void read(const dapl::Ep& ep, Values to) {
  const nic::QueuePair::Counters& c = ep.queue_pair().counters();
  const nic::QueuePair::PostedReceives receives = ep.queue_pair().posted_receives();
  to[DCNT_EP_CONNECT] = ep.connection().connects();
  to[DCNT_EP_DISCONNECT] = ep.connection().disconnects();
  to[DCNT_EP_POST_SEND] = c.sends.get();
  to[DCNT_EP_POST_SEND_DATA] = c.send_bytes.get();
  to[DCNT_EP_POST_RECV] = receives.count;
  to[DCNT_EP_POST_RECV_DATA] = receives.bytes;
  to[DCNT_EP_POST_WRITE] = c.writes.get();
  to[DCNT_EP_POST_WRITE_DATA] = c.write_bytes.get();
  to[DCNT_EP_POST_WRITE_IMM] = c.write_immediates.get();
  to[DCNT_EP_POST_WRITE_IMM_DATA] = c.write_immediate_bytes.get();
  to[DCNT_EP_POST_READ] = c.reads.get();
  to[DCNT_EP_POST_READ_DATA] = c.read_bytes.get();
  to[DCNT_EP_POST_CMP_SWAP] = c.compare_swaps.get();
  to[DCNT_EP_POST_FETCH_ADD] = c.fetch_adds.get();
  to[DCNT_EP_RECV] = c.receives.get();
  to[DCNT_EP_RECV_DATA] = c.receive_bytes.get();
  to[DCNT_EP_RECV_RDMA_IMM] = c.immediates.get();
  to[DCNT_EP_RECV_RDMA_IMM_DATA] = c.immediate_bytes.get();
}

void read(const dapl::Evd& evd, Values to) {
  const dapl::Evd::Counters c = evd.counters();
  to[DCNT_EVD_WAIT] = c.wait_calls;
  to[DCNT_EVD_WAIT_BLOCKED] = c.waits;
  to[DCNT_EVD_WAIT_NOTIFY] = c.wake_ups;
  to[DCNT_EVD_DEQUEUE] = c.found + c.not_found;
  to[DCNT_EVD_DEQUEUE_FOUND] = c.found;
  to[DCNT_EVD_DEQUEUE_NOT_FOUND] = c.not_found;
  to[DCNT_EVD_DEQUEUE_POLL] = c.poll_found + c.not_found;
  to[DCNT_EVD_DEQUEUE_POLL_FOUND] = c.poll_found;
  to[DCNT_EVD_CONN_CALLBACK] = c.connection;
  to[DCNT_EVD_DTO_CALLBACK] = c.completions;
}

constexpr std::size_t kMost = kIaCounterNames.size();
// Of the arguments of dat_extension_op.
constexpr unsigned kCounterPlace = 3;

// The counters that a call is about: one, or all of an object's.
struct Chosen {
  const char* type;  // of the object
  std::span<const char* const> names;
  std::size_t first;
  std::size_t end;
  std::array<DAT_UINT64, kMost> values{};
};

// Reads them, and makes them begin at 0 again if that is wanted (D2-CNTR-3). Nothing: another thread has freed the
// object meanwhile (MT-4), and a reset of it would be one of whatever has its address next.
template <typename Object>
std::optional<Chosen> read_chosen(Object& object, const Chosen& chosen, bool reset) {
  Chosen result = chosen;
  os::Guard guard(object.ia().engine());
  if (!object.alive()) return std::nullopt;
  read(object, result.values);
  dapl::ResetCounts& resets = object.ia().reset_counts();
  for (std::size_t i = chosen.first; i < chosen.end; ++i) {
    const DAT_UINT64 value = result.values[i];
    result.values[i] = resets.since_reset(object, i, value);
    if (reset) resets.reset(object, i, chosen.names.size(), value);
  }
  return result;
}

// use(const Chosen&) has them with their values. Nothing of `chosen` has been read if it is refused.
template <typename Use>
dapl::Error with_counters(const char* call, DAT_HANDLE handle, int counter, bool reset, Use use) {
  const auto of = [&](auto& object, const char* type, std::span<const char* const> names) {
    const auto all = static_cast<int>(names.size());
    if (counter < 0 || counter > all) {
      return dapl::fail(at(kCounterPlace), "{}: counter {} is none of the {} that an {} has", call, counter, all, type);
    }
    const auto number = static_cast<std::size_t>(counter);
    const bool one = counter != all;
    const std::optional<Chosen> chosen =
        read_chosen(object, Chosen{type, names, one ? number : 0, one ? number + 1 : names.size()}, reset);
    if (!chosen) return bad_handle(call, "dat_handle", handle, dapl::Detail::none);
    use(*chosen);
    return dapl::kSuccess;
  };
  if (auto* ia = dapl::lookup<dapl::Ia>(handle)) return of(*ia, "IA", kIaCounterNames);
  if (auto* ep = dapl::lookup<dapl::Ep>(handle)) return of(*ep, "EP", kEpCounterNames);
  if (auto* evd = dapl::lookup<dapl::Evd>(handle)) return of(*evd, "EVD", kEvdCounterNames);
  return bad_handle(call, "dat_handle", handle, dapl::Detail::none);
}

}  // namespace

dapl::Error query_counters(DAT_HANDLE handle, va_list arguments) {
  const char* call = "dat_ib_query_counters";
  const int counter = va_arg(arguments, int);
  auto* const values = va_arg(arguments, DAT_UINT64*);
  const bool reset = va_arg(arguments, int) != 0;
  const bool counted =
      dapl::lookup<dapl::Ia>(handle) || dapl::lookup<dapl::Ep>(handle) || dapl::lookup<dapl::Evd>(handle);
  if (counted && !values) return dapl::fail(at(kCounterPlace + 1), "{}: the array is NULL", call);
  return with_counters(call, handle, counter, reset, [values](const Chosen& chosen) {
    std::copy(chosen.values.begin() + chosen.first, chosen.values.begin() + chosen.end, values + chosen.first);
  });
}

// D2-CNTR-5.
dapl::Error print_counters(DAT_HANDLE handle, va_list arguments) {
  const int counter = va_arg(arguments, int);
  const bool reset = va_arg(arguments, int) != 0;
  return with_counters("dat_ib_print_counters", handle, counter, reset, [handle](const Chosen& chosen) {
    fmt::memory_buffer lines;
    fmt::format_to(std::back_inserter(lines), "{} {}\n", chosen.type, handle);
    for (std::size_t i = chosen.first; i < chosen.end; ++i) {
      fmt::format_to(std::back_inserter(lines), "  {} {}\n", chosen.names[i], chosen.values[i]);
    }
    env::print_lines({lines.data(), lines.size()});
  });
}

// D2-CNTR-6, D2-CNTR-7.
dapl::Error switch_counters(DAT_HANDLE handle, va_list arguments) {
  const char* call = "dat_ib_start_counter or dat_ib_stop_counter";
  if (!dapl::lookup<dapl::Ia>(handle)) return bad_handle(call, "dat_handle", handle, dapl::Detail::handle_ia);
  switch (const int type = va_arg(arguments, int); type) {
    case DCNT_IA_CM:
      return dapl::kSuccess;
    case DCNT_IA_LNK:
    case DCNT_IA_DIAG:
      return dapl::fail(dapl::Code::model_not_supported, dapl::Detail::none,
                        "{}: this adapter has no counters of links and of diagnostics", call);
    default:
      return dapl::fail(at(kCounterPlace), "{}: type {} is unknown", call, type);
  }
}

}  // namespace anydat::face
