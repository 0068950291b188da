// SPDX-License-Identifier: BSD-3-Clause
// What both processes of the counting of calls are made of: a connection with its memory, and the page that they share.
#pragma once

#include <anydat/anydat.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/adapter.h"
#include "common/connection.h"

namespace counting {

inline constexpr int kMost = 64;
inline constexpr DAT_COUNT kDepth = 2 * kMost;
inline constexpr std::size_t kMessageBytes = 64;
inline constexpr std::chrono::seconds kPatience{60};  // the counted side is some fifty times slower than usual
inline constexpr int kAtOnce = 16;                    // by one of the calls for many

// The calls for many at once, by their names: a library from before they were there is counted without them.
template <typename Function>
Function* call_named(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}
#define ANYDAT_CALL_NAMED(name) call_named(static_cast<decltype(&(name))>(nullptr), #name)
inline const struct AtOnceCalls {
  decltype(&anydat_ep_post_sends) ep_post_sends = ANYDAT_CALL_NAMED(anydat_ep_post_sends);
  decltype(&anydat_ep_post_recvs) ep_post_recvs = ANYDAT_CALL_NAMED(anydat_ep_post_recvs);
  decltype(&anydat_srq_post_recvs) srq_post_recvs = ANYDAT_CALL_NAMED(anydat_srq_post_recvs);
  decltype(&anydat_evd_dequeue_many) evd_dequeue_many = ANYDAT_CALL_NAMED(anydat_evd_dequeue_many);
  bool all_there() const { return ep_post_sends && ep_post_recvs && srq_post_recvs && evd_dequeue_many; }
} at_once_calls;

// What the two processes share besides the adapter.
struct Page {
  std::atomic<std::uint64_t> qualifier;
  std::atomic<std::uint32_t> wanted;  // orders so far
  std::atomic<std::uint32_t> done;    // of them, carried out
  std::atomic<std::uint32_t> received;
  std::atomic<std::uint32_t> sends;   // what the latest order is: so many Sends
  std::atomic<std::uint32_t> on_srq;  // on the endpoint with a shared queue
  struct {
    std::uint64_t address;
    std::uint32_t context;
  } mapped, heap;
};

// One connection and all that it needs. Messages lie in one region: those to send first, buffers to receive behind.
struct Side {
  Side(const tools::Adapter& adapter, bool on_srq)
      : recv(adapter.make_evd(4 * kDepth, DAT_EVD_DTO_FLAG)),
        request(adapter.make_evd(4 * kDepth, DAT_EVD_DTO_FLAG)),
        connect(adapter.make_evd(8, DAT_EVD_CONNECTION_FLAG)),
        region(adapter, 2 * kDepth * kMessageBytes) {
    if (on_srq) srq = adapter.make_srq(kDepth);
    ep = on_srq ? adapter.make_ep_with_srq(recv.get(), request.get(), connect.get(), srq.get(), kDepth)
                : adapter.make_ep(recv.get(), request.get(), connect.get(), kDepth, kDepth);
  }

  std::byte* message(std::size_t index) const { return region.data() + index * kMessageBytes; }
  std::byte* buffer(std::size_t index) const { return message(static_cast<std::size_t>(kDepth) + index); }

  DAT_RETURN post_recv(std::size_t index) {
    DAT_LMR_TRIPLET triplet = region.at((static_cast<std::size_t>(kDepth) + index) * kMessageBytes, kMessageBytes);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = index;
    return srq ? dat_srq_post_recv(srq.get(), 1, &triplet, cookie)
               : dat_ep_post_recv(ep.get(), 1, &triplet, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  }

  DAT_RETURN post_send(std::size_t index) {
    DAT_LMR_TRIPLET triplet = region.at(index * kMessageBytes, kMessageBytes);
    return dat_ep_post_send(ep.get(), 1, &triplet, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
  }

  // By one call.
  void post_recvs(int count) {
    std::array<DAT_LMR_TRIPLET, kAtOnce> triplets;
    std::array<ANYDAT_SRQ_POST, kAtOnce> to_srq{};
    std::array<ANYDAT_EP_POST, kAtOnce> to_ep{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      triplets[i] = region.at((static_cast<std::size_t>(kDepth) + i) * kMessageBytes, kMessageBytes);
      to_srq[i] = {1, &triplets[i], {}};
      to_ep[i] = {1, &triplets[i], {}, DAT_COMPLETION_DEFAULT_FLAG};
    }
    DAT_COUNT posted = 0;
    if (srq) {
      at_once_calls.srq_post_recvs(srq.get(), count, to_srq.data(), &posted);
    } else {
      at_once_calls.ep_post_recvs(ep.get(), count, to_ep.data(), &posted);
    }
  }

  void post_sends(int count) {
    std::array<DAT_LMR_TRIPLET, kAtOnce> triplets;
    std::array<ANYDAT_EP_POST, kAtOnce> sends{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      triplets[i] = region.at(i * kMessageBytes, kMessageBytes);
      sends[i] = {1, &triplets[i], {}, DAT_COMPLETION_DEFAULT_FLAG};
    }
    DAT_COUNT posted = 0;
    at_once_calls.ep_post_sends(ep.get(), count, sends.data(), &posted);
  }

  DAT_RETURN post_rdma(bool write, const DAT_RMR_TRIPLET& target) {
    DAT_LMR_TRIPLET triplet = region.at(0, kMessageBytes);
    DAT_RMR_TRIPLET remote = target;
    return (write ? dat_ep_post_rdma_write : dat_ep_post_rdma_read)(ep.get(), 1, &triplet, DAT_DTO_COOKIE{}, &remote,
                                                                    DAT_COMPLETION_DEFAULT_FLAG);
  }

  tools::Evd recv, request, connect;
  tools::Region region;
  tools::Srq srq;
  tools::Ep ep;
};

// The next event of a dispatcher, if there is one; a completion that failed ends the program.
bool take(DAT_EVD_HANDLE evd, DAT_EVENT& event);
void take_all(DAT_EVD_HANDLE evd, int count);

}  // namespace counting
