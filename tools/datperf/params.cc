// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/params.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "datperf/message.h"

namespace datperf {
namespace {

constexpr std::uint64_t kMagic = 0x6461747065726634;
constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint64_t kPage = 4096;
// With several clients both are the same for any number of connections, so that runs with few and with many are alike.
// The buffers hold all that the rings of a few clients hold.
constexpr std::uint64_t kSharedReceives = 32768;
constexpr std::uint64_t kSendSlotsEach = 16;
constexpr std::uint64_t kRdmaBytes = 128 << 10;

// Both ends copy it as it is: a host of the other byte order does not recognise the magic and refuses.
struct Wire {
  std::uint64_t magic;
  std::uint8_t metric, op, srq, block;
  std::uint32_t endpoints, index;
  std::uint16_t shareable, clients;
  std::uint64_t size, iters, warmup, run;
  std::uint8_t window, slots;  // 0, or 1 more than the logarithm
  std::uint8_t bidirectional, notices;
  std::uint16_t batch, at_once;
};
static_assert(sizeof(Wire) == sizeof(WireParams));

std::uint8_t packed(std::uint32_t power_of_two) {
  return static_cast<std::uint8_t>(std::bit_width(power_of_two));
}
std::uint32_t unpacked(std::uint8_t bits) {
  return bits == 0 ? 0 : std::uint32_t{1} << (bits - 1);
}

// What the options of a run are good for. The command line refuses the same with a sentence; a request is from
// anywhere.
bool fits_together(const Wire& wire) {
  const bool lat = wire.metric == static_cast<std::uint8_t>(Metric::lat);
  const bool write = wire.op == static_cast<std::uint8_t>(Op::write);
  if (wire.bidirectional > 1 || wire.notices > 1) return false;
  if (lat && (wire.window != 0 || wire.batch != 0 || wire.bidirectional != 0)) return false;
  if (wire.notices != 0 && !(lat && write)) return false;
  if (wire.at_once != 0 &&
      (lat || wire.op != static_cast<std::uint8_t>(Op::send) || wire.block != 0 || wire.bidirectional != 0)) {
    return false;
  }
  if (lat && write && wire.block != 0 && wire.notices == 0) return false;
  if (wire.bidirectional != 0 && wire.block != 0) return false;
  // Of several clients each would have to say when it begins.
  return wire.clients == 1 || (wire.iters != 0 && wire.bidirectional == 0 && wire.window == 0 && wire.slots == 0 &&
                               wire.batch == 0 && wire.at_once == 0);
}
bool within_bounds(const Wire& wire) {
  return wire.endpoints >= 1 && wire.endpoints <= kEndpointsMax && wire.index < wire.endpoints && wire.clients >= 1 &&
         wire.endpoints % wire.clients == 0 && wire.size >= 1 && wire.size <= kSizeMax &&
         wire.window <= packed(kWindowMax) && wire.slots <= packed(kSlotsMax) && wire.batch <= kWindowMax &&
         wire.at_once <= kAtOnceMax;
}

}  // namespace

std::string_view name_of(Metric metric) {
  switch (metric) {
    case Metric::lat:
      return "lat";
    case Metric::bw:
      return "bw";
    case Metric::rate:
      return "rate";
  }
  return "?";
}

std::string_view name_of(Op op) {
  switch (op) {
    case Op::send:
      return "send";
    case Op::write:
      return "write";
    case Op::read:
      return "read";
  }
  return "?";
}

WireParams encode(const Params& params, std::uint32_t index) {
  const Wire wire{.magic = kMagic,
                  .metric = static_cast<std::uint8_t>(params.metric),
                  .op = static_cast<std::uint8_t>(params.op),
                  .srq = params.srq,
                  .block = params.block,
                  .endpoints = params.endpoints * params.clients,
                  .index = params.client * params.endpoints + index,
                  .shareable = params.shareable,
                  .clients = static_cast<std::uint16_t>(params.clients),
                  .size = params.size,
                  .iters = params.iters * params.clients,
                  .warmup = params.warmup * params.clients,
                  .run = params.run,
                  .window = packed(params.window),
                  .slots = packed(params.slots),
                  .bidirectional = params.bidirectional,
                  .notices = params.notices,
                  .batch = static_cast<std::uint16_t>(params.batch),
                  .at_once = static_cast<std::uint16_t>(params.at_once)};
  WireParams bytes{};
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

std::optional<Params> decode(std::span<const std::byte> bytes) {
  Wire wire{};
  if (bytes.size() != sizeof(WireParams)) return std::nullopt;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  const bool known = wire.magic == kMagic && wire.metric <= static_cast<std::uint8_t>(Metric::rate) &&
                     wire.op <= static_cast<std::uint8_t>(Op::read);
  if (!known || !within_bounds(wire) || !fits_together(wire)) return std::nullopt;
  return Params{.metric = static_cast<Metric>(wire.metric),
                .op = static_cast<Op>(wire.op),
                .srq = wire.srq != 0,
                .shareable = wire.shareable != 0,
                .block = wire.block != 0,
                .endpoints = wire.endpoints,
                .index = wire.index,
                .clients = wire.clients,
                .window = unpacked(wire.window),
                .slots = unpacked(wire.slots),
                .batch = wire.batch,
                .at_once = wire.at_once,
                .bidirectional = wire.bidirectional != 0,
                .notices = wire.notices != 0,
                .size = wire.size,
                .iters = wire.iters,
                .warmup = wire.warmup,
                .run = wire.run};
}

bool alike(const Params& params) {
  if (params.slots == 0 || params.op != Op::send || params.metric == Metric::lat) return false;
  // An SRQ has its buffers for all endpoints together.
  return params.slots < std::uint64_t{sizing_of(params, Role::client).window} * (params.srq ? params.endpoints : 1);
}

std::uint32_t transfers_of(const Params& params) {
  constexpr std::uint32_t kTransfers = 128;
  if (params.window != 0) return params.window;
  return params.metric == Metric::lat ? 1 : std::max(kTransfers / std::bit_ceil(params.endpoints), 1u);
}

// As many as a Send has, but so few large ones that a stream stays in the processor's cache as long as can be: no side
// waits for a slot to be read, since both memories are ours to use.
std::uint64_t rdma_slots(const Params& params) {
  if (params.slots != 0) return params.slots;
  return std::clamp<std::uint64_t>(std::bit_floor(kRdmaBytes / params.size), 1,
                                   sizing_of(params, Role::client).send_slots);
}

namespace {

// How many buffers a side sends from and receives into if the user has nothing to say about it.
struct Amounts {
  std::uint64_t receives;
  std::uint64_t sends;
};
Amounts usual_amounts(const Params& params, Role role, std::uint64_t bytes) {
  const auto fitting = [&](std::uint64_t budget, std::uint64_t least, std::uint64_t most) {
    return std::bit_floor(std::clamp(budget / bytes, least, most));
  };
  Amounts amounts{.receives = 8, .sends = 8};  // for reports, which are all that comes against the stream
  if (params.metric == Metric::lat) {
    amounts = {.receives = fitting(256 << 10, 4, 64), .sends = fitting(64 << 10, 2, 64)};
  } else {
    if (role == Role::server || params.bidirectional) amounts.receives = fitting(1 << 20, 4, 512);
    if (role == Role::client || params.bidirectional) amounts.sends = fitting(512 << 10, 2, 512);
  }
  // Many endpoints share the amounts, down to a few each; an SRQ holds at least a few for every one of them.
  const std::uint64_t endpoints = std::bit_ceil(params.endpoints);
  if (params.srq) {
    amounts.receives =
        std::max(amounts.receives, std::min(2 * endpoints, std::max<std::uint64_t>((64 << 20) / bytes, 4)));
  } else {
    amounts.receives = std::max<std::uint64_t>(amounts.receives / endpoints, 4);
  }
  amounts.sends = std::max<std::uint64_t>(amounts.sends / endpoints, 2);
  if (params.clients > 1) {
    if (role == Role::server) amounts.receives = fitting(64 << 20, 4, kSharedReceives);
    if (role == Role::client) amounts.sends = kSendSlotsEach;
  }
  return amounts;
}

}  // namespace

Sizing sizing_of(const Params& params, Role role) {
  const std::uint64_t bytes = std::max<std::uint64_t>(params.size, sizeof(Report));
  const std::uint64_t unit = bytes >= kPage ? kPage : kCacheLine;
  const Amounts usual = usual_amounts(params, role, bytes);
  const bool lat = params.metric == Metric::lat;
  const bool streams = !lat && params.op == Op::send;
  const bool sends = streams && (role == Role::client || params.bidirectional);
  const bool receives = streams && (role == Role::server || params.bidirectional);
  Sizing sizing;
  sizing.stride = static_cast<std::uint32_t>((bytes + unit - 1) / unit * unit);
  sizing.window = sends && params.window != 0 ? params.window : static_cast<std::uint32_t>(usual.sends);
  sizing.send_slots = (sends || lat) && params.slots != 0 ? params.slots : std::max(sizing.window, 1u);
  std::uint64_t posted = usual.receives;
  if (receives) {
    // Whatever may be in flight finds a buffer. Those that the user has asked for are all posted.
    const std::uint64_t each = params.srq ? params.endpoints : 1;
    const std::uint64_t window = params.window != 0 ? params.window : usual_amounts(params, Role::client, bytes).sends;
    const std::uint64_t in_flight = window * each;
    if (params.window != 0) posted = std::max(posted, in_flight);
    if (params.slots != 0) posted = std::max<std::uint64_t>(in_flight, params.slots);
  }
  const bool chosen = (receives || (lat && params.op == Op::send)) && params.slots != 0;
  // The next question finds a buffer posted before that of the last one is back, though both may be the same.
  if (chosen && lat) posted = std::max<std::uint64_t>(params.slots, 4);
  sizing.receives = static_cast<std::uint32_t>(posted);
  sizing.receive_slots = chosen ? std::min(params.slots, sizing.receives) : sizing.receives;
  sizing.signal_every = std::clamp<std::uint32_t>(sizing.window / 4, 1, 64);
  if (lat && params.op == Op::read) sizing.signal_every = 1;  // its completion is what is waited for
  sizing.requests = sizing.window;
  if (params.op == Op::send) return sizing;
  sizing.requests = std::max(sizing.requests, transfers_of(params));
  if (params.notices) sizing.requests *= 2;
  return sizing;
}

std::uint64_t memory_of(const Params& params, Role role) {
  constexpr std::uint64_t kOfEntry = 256;      // of a queue, with the events that it can lead to
  constexpr std::uint64_t kOfEndpoint = 4096;  // besides
  const Sizing sizing = sizing_of(params, role);
  const std::uint64_t endpoints = params.endpoints;
  const std::uint64_t lanes = params.srq ? 1 : endpoints;  // that have receives of their own
  std::uint64_t slots = sizing.receive_slots * lanes + sizing.send_slots * endpoints;
  if (params.op != Op::send) slots += 2 * rdma_slots(params) * endpoints;  // its own, and offered
  // None of the factors is beyond 2^31, and what may be many of one is few of the other.
  return slots * sizing.stride + (sizing.receives * lanes + sizing.requests * endpoints) * kOfEntry +
         endpoints * kOfEndpoint;
}

std::uint64_t default_iters(Metric metric, std::uint64_t size, bool slow_path) {
  const std::uint64_t bytes = metric == Metric::lat ? 400'000'000 : 4'000'000'000;
  const std::uint64_t most = metric == Metric::lat ? 200'000 : 2'000'000;
  return std::clamp<std::uint64_t>(bytes / size, 200, slow_path ? most / 10 : most);
}

}  // namespace datperf
