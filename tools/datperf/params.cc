// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/params.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "datperf/message.h"

namespace datperf {
namespace {

constexpr std::uint64_t kMagic = 0x6461747065726633;
constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint64_t kPage = 4096;
// With several clients both are the same for any number of connections, so that runs with few and with many are alike.
// The buffers hold all that the rings of a few clients hold.
constexpr std::uint64_t kSharedReceives = 32768;
constexpr std::uint64_t kSendSlotsEach = 16;

// Both ends copy it as it is: a host of the other byte order does not recognise the magic and refuses.
struct Wire {
  std::uint64_t magic;
  std::uint8_t metric, op, srq, block;
  std::uint32_t endpoints, index;
  std::uint16_t shareable, clients;
  std::uint64_t size, iters, warmup, run;
};
static_assert(sizeof(Wire) <= sizeof(WireParams));

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
                  .run = params.run};
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
  const bool sane = wire.endpoints >= 1 && wire.endpoints <= kEndpointsMax && wire.index < wire.endpoints &&
                    wire.clients >= 1 && wire.endpoints % wire.clients == 0 && wire.size >= 1 &&
                    wire.size <= kSizeMax && wire.iters >= 1;
  if (!known || !sane) return std::nullopt;
  return Params{.metric = static_cast<Metric>(wire.metric),
                .op = static_cast<Op>(wire.op),
                .srq = wire.srq != 0,
                .shareable = wire.shareable != 0,
                .block = wire.block != 0,
                .endpoints = wire.endpoints,
                .index = wire.index,
                .clients = wire.clients,
                .size = wire.size,
                .iters = wire.iters,
                .warmup = wire.warmup,
                .run = wire.run};
}

std::uint32_t transfers_of(const Params& params) {
  constexpr std::uint32_t kTransfers = 128;
  return params.metric == Metric::lat ? 1 : std::max(kTransfers / std::bit_ceil(params.endpoints), 1u);
}

Sizing sizing_of(const Params& params, Role role) {
  const std::uint64_t bytes = std::max<std::uint64_t>(params.size, sizeof(Report));
  const std::uint64_t unit = bytes >= kPage ? kPage : kCacheLine;
  const auto fitting = [&](std::uint64_t budget, std::uint64_t least, std::uint64_t most) {
    return std::bit_floor(std::clamp(budget / bytes, least, most));
  };
  Sizing sizing;
  sizing.stride = static_cast<std::uint32_t>((bytes + unit - 1) / unit * unit);

  const bool lat = params.metric == Metric::lat;
  std::uint64_t receives = 8;  // a streaming client receives nothing but reports
  std::uint64_t sends = 8;     // a draining server sends nothing but reports
  if (lat) {
    receives = fitting(256 << 10, 4, 64);
    sends = fitting(64 << 10, 2, 64);
  } else if (role == Role::server) {
    receives = fitting(1 << 20, 4, 512);
  } else {
    sends = fitting(512 << 10, 2, 512);
  }
  // Many endpoints share the amounts, down to a few each; an SRQ holds at least a few for every one of them.
  const std::uint64_t endpoints = std::bit_ceil(params.endpoints);
  if (params.srq) {
    receives = std::max(receives, std::min(2 * endpoints, std::max<std::uint64_t>((64 << 20) / bytes, 4)));
  } else {
    receives = std::max<std::uint64_t>(receives / endpoints, 4);
  }
  sends = std::max<std::uint64_t>(sends / endpoints, 2);
  if (params.clients > 1) {
    if (role == Role::server) receives = fitting(64 << 20, 4, kSharedReceives);
    if (role == Role::client) sends = kSendSlotsEach;
  }
  sizing.receives = static_cast<std::uint32_t>(receives);
  sizing.send_slots = static_cast<std::uint32_t>(sends);
  sizing.signal_every = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(sends / 4, 1, 64));
  if (lat && params.op == Op::read) sizing.signal_every = 1;  // its completion is what is waited for
  sizing.requests = sizing.send_slots;
  if (params.op != Op::send) sizing.requests = std::max(sizing.requests, transfers_of(params));
  return sizing;
}

std::uint64_t memory_of(const Params& params, Role role) {
  constexpr std::uint64_t kOfEntry = 256;      // of a queue, with the events that it can lead to
  constexpr std::uint64_t kOfEndpoint = 4096;  // besides
  const Sizing sizing = sizing_of(params, role);
  const std::uint64_t endpoints = params.endpoints;
  const std::uint64_t receives = params.srq ? sizing.receives : sizing.receives * endpoints;
  std::uint64_t slots = receives + sizing.send_slots * endpoints;
  if (params.op != Op::send)
    slots += 2 * sizing_of(params, Role::client).send_slots * endpoints;  // its own, and offered
  // None of the factors is beyond 2^31, and what may be many of one is few of the other.
  return slots * sizing.stride + (receives + sizing.requests * endpoints) * kOfEntry + endpoints * kOfEndpoint;
}

std::uint64_t default_iters(Metric metric, std::uint64_t size, bool slow_path) {
  const std::uint64_t bytes = metric == Metric::lat ? 400'000'000 : 4'000'000'000;
  const std::uint64_t most = metric == Metric::lat ? 200'000 : 2'000'000;
  return std::clamp<std::uint64_t>(bytes / size, 200, slow_path ? most / 10 : most);
}

}  // namespace datperf
