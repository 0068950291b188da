// SPDX-License-Identifier: BSD-3-Clause
// What one run measures. The client decides; the server learns it from the private data of the connection requests.
#ifndef ANYDAT_TOOLS_DATPERF_PARAMS_H
#define ANYDAT_TOOLS_DATPERF_PARAMS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace datperf {

enum class Metric : std::uint8_t { lat, bw, rate };
enum class Op : std::uint8_t { send, write, read };

std::string_view name_of(Metric metric);
std::string_view name_of(Op op);

struct Params {
  Metric metric = Metric::lat;
  Op op = Op::send;
  bool srq = false;
  bool shareable = false;       // RDMA on memory that the other process can map (anydat_alloc_shareable)
  bool block = false;           // wait in dat_evd_wait rather than poll with dat_evd_dequeue
  std::uint32_t endpoints = 1;  // connections of this process
  std::uint32_t index = 0;      // which of the server's this request is for
  std::uint32_t clients = 1;    // processes that share the run, each with as many connections and messages
  std::uint32_t client = 0;     // which of them this one is
  std::uint32_t burst = 1;      // messages that one connection sends before it is the next one's turn
  std::uint32_t window = 0;     // operations of one endpoint in flight, a power of two; 0: by size
  std::uint32_t slots = 0;      // buffers that are used in turn, at either end, a power of two; 0: by size
  std::uint32_t batch = 0;      // posts in a row before completions are looked at; 0: as many as the window takes
  std::uint32_t at_once = 0;    // posts and events of a stream of Sends by one of anydat's calls; 0: the standard's
  bool bidirectional = false;   // a stream in either direction at the same time
  bool notices = false;         // lat of Writes: a Send behind each tells of it
  std::uint64_t size = 8;       // bytes in a message
  std::uint64_t iters = 0;      // measured messages (lat: round trips); 0: the client says before each phase
  std::uint64_t warmup = 0;     // as many before the measurement begins
  std::uint64_t run = 0;        // the same in all requests of one run, different between runs

  double directions() const { return bidirectional ? 2 : 1; }
};

// What the request for connection `index` of a client's says of the run: to the server, which has the connections and
// messages of all clients. 64 bytes are what every provider carries (PD-1), so a run fits its description into them.
using WireParams = std::array<std::byte, 64>;
WireParams encode(const Params& params, std::uint32_t index);
std::optional<Params> decode(std::span<const std::byte> bytes);

// Whether several messages of a stream of Sends may be in the same buffer at a time. Then all are alike: none is
// written anew while another one is on its way from there.
bool alike(const Params& params);
// Whether the client says before each phase how long it is, and the server that it is ready for it.
inline bool announces(const Params& params) {
  return params.iters == 0 || params.bidirectional;
}

// How much a side prepares for a run. Both sides compute it from the same parameters.
//
// Latency uses few buffers, so that a message meets memory that is warm, as it would with any peer. A stream uses as
// many as keep both sides busy, within a budget of memory that stays in a processor's cache: what is measured is the
// way of a message, not main memory. Every buffer of a Send is a different one all the same.
struct Sizing {
  std::uint32_t stride = 0;         // distance between buffers: no two share a cache line
  std::uint32_t receives = 0;       // buffers posted: in the SRQ, or else at each endpoint
  std::uint32_t receive_slots = 0;  // places that they are in, at most as many
  std::uint32_t send_slots = 0;     // buffers of each endpoint to send from; a power of two
  std::uint32_t window = 0;         // Sends in flight on each endpoint; a power of two
  std::uint32_t signal_every = 0;   // one Send of so many asks for its completion; a power of two, <= window
  std::uint32_t requests = 0;       // all that is under way on each endpoint; a power of two, >= window
};
enum class Role { client, server };
Sizing sizing_of(const Params& params, Role role);
// How many buffers of RDMA each endpoint has, on either side.
std::uint64_t rdma_slots(const Params& params);
// How many RDMA operations each endpoint has under way at least, several of them in the same slot if need be: a stream
// waits for no program at the other end. A power of two, the same on both sides.
std::uint32_t transfers_of(const Params& params);

// What the memory of one side amounts to, its queues included.
std::uint64_t memory_of(const Params& params, Role role);

// Enough repetitions for a steady median within about a second.
std::uint64_t default_iters(Metric metric, std::uint64_t size, bool slow_path);

}  // namespace datperf

#endif
