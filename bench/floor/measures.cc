// SPDX-License-Identifier: BSD-3-Clause
#include "floor/measures.h"

#include <algorithm>

#include "bare/two_processes.h"
#include "common/error.h"
#include "common/ticks.h"
#include "floor/stripped.h"

namespace bench {
namespace {

struct Rings {
  Ring there;
  Ring back;
  alignas(64) std::atomic<std::uint64_t> done;
};

std::uint64_t warm_up_of(std::uint64_t rounds) {
  return rounds / 10 + 1;
}

void check(bool good) {
  if (!good) throw tools::Error("a message of the stripped way was refused");
}

// `turn` is one round trip. Samples come after a tenth as many to warm up.
template <typename Turn>
tools::Summary latency_of(std::uint64_t rounds, Turn&& turn) {
  std::vector<std::uint32_t> samples(rounds);
  for (std::uint64_t i = 0; i < warm_up_of(rounds); ++i) turn(i);
  const tools::TickScale scale;
  std::uint64_t last = tools::ticks();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    turn(warm_up_of(rounds) + i);
    const std::uint64_t now = tools::ticks();
    samples[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(now - last, UINT32_MAX));
    last = now;
  }
  return tools::summarize(samples, scale.ns_per_tick() / 2);
}

double seconds_since(std::uint64_t start_ns) {
  return static_cast<double>(std::max<std::uint64_t>(tools::now_ns() - start_ns, 1)) / 1e9;
}

template <typename Word>
void wait_until(const std::atomic<Word>& word, Word value) {
  for (Spin spin; word.load(std::memory_order_acquire) != value; spin.turn()) {
  }
}

// One end of the stripped way, with all its receives posted.
class StrippedEnd {
 public:
  StrippedEnd(Ring& out, Ring& in, std::size_t bytes)
      : memory_((kSlots + 1) * stride(bytes)), bytes_(bytes), endpoint_(out, in), handle_(handles_.add(endpoint_)) {
    endpoint_.add_region({kKey, memory_.data(), memory_.size()});
    for (std::uint64_t i = 0; i < kSlots; ++i) check(endpoint_.post_receive(slot(i), i));
  }
  void send() {
    Endpoint* const endpoint = handles_.find(handle_);
    check(endpoint != nullptr && endpoint->post_send(slot(kSlots)));
  }
  void receive() {
    Endpoint* const endpoint = handles_.find(handle_);
    Event event;
    check(endpoint != nullptr && endpoint->dequeue(event) && event.length == bytes_);
    check(endpoint->post_receive(slot(event.cookie), event.cookie));
  }

 private:
  static constexpr std::uint64_t kSlots = 64;
  static constexpr std::uint32_t kKey = 0x1235;
  static std::size_t stride(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  Segment slot(std::uint64_t index) { return {kKey, memory_.data() + index * stride(bytes_), bytes_}; }

  std::vector<std::byte> memory_;
  std::size_t bytes_;
  Endpoint endpoint_;
  Handles handles_;
  std::uint64_t handle_;
};

// The rate of messages that `send` sends `rounds` times and `receive` receives.
template <typename MakeSend, typename MakeReceive>
double rate_of(const How& how, MakeSend&& make_send, MakeReceive&& make_receive) {
  const SharedMemory memory(sizeof(Rings));
  auto& rings = memory.at<Rings>(0);
  const std::uint64_t warm_up = warm_up_of(how.rounds);
  double rate = 0;
  in_two_processes(
      how.cpus,
      [&] {
        auto&& receive = make_receive(rings);
        for (std::uint64_t i = 0; i < warm_up; ++i) receive();
        rings.done.store(1, std::memory_order_release);
        for (std::uint64_t i = 0; i < how.rounds; ++i) receive();
        rings.done.store(2, std::memory_order_release);
      },
      [&] {
        auto&& send = make_send(rings);
        for (std::uint64_t i = 0; i < warm_up; ++i) send();
        wait_until(rings.done, std::uint64_t{1});
        const std::uint64_t start_ns = tools::now_ns();
        for (std::uint64_t i = 0; i < how.rounds; ++i) send();
        wait_until(rings.done, std::uint64_t{2});
        rate = static_cast<double>(how.rounds) / seconds_since(start_ns);
      });
  return rate;
}

}  // namespace

tools::Summary ring_latency(const How& how, std::size_t bytes) {
  const SharedMemory memory(sizeof(Rings));
  auto& rings = memory.at<Rings>(0);
  tools::Summary half;
  in_two_processes(
      how.cpus,
      [&] {
        std::vector<std::byte> message(bytes);
        Reader reader(rings.there);
        Writer writer(rings.back);
        for (std::uint64_t i = 0; i < warm_up_of(how.rounds) + how.rounds; ++i) {
          reader.read(message.data());
          writer.write(message.data(), bytes);
        }
      },
      [&] {
        std::vector<std::byte> message(bytes);
        Writer writer(rings.there);
        Reader reader(rings.back);
        half = latency_of(how.rounds, [&](std::uint64_t) {
          writer.write(message.data(), bytes);
          reader.read(message.data());
        });
      });
  return half;
}

tools::Summary stripped_latency(const How& how, std::size_t bytes) {
  const SharedMemory memory(sizeof(Rings));
  auto& rings = memory.at<Rings>(0);
  tools::Summary half;
  in_two_processes(
      how.cpus,
      [&] {
        StrippedEnd end(rings.back, rings.there, bytes);
        for (std::uint64_t i = 0; i < warm_up_of(how.rounds) + how.rounds; ++i) {
          end.receive();
          end.send();
        }
      },
      [&] {
        StrippedEnd end(rings.there, rings.back, bytes);
        half = latency_of(how.rounds, [&](std::uint64_t) {
          end.send();
          end.receive();
        });
      });
  return half;
}

tools::Summary write_latency(const How& how) {
  struct Flags {
    alignas(64) std::atomic<std::uint64_t> there;
    alignas(64) std::atomic<std::uint64_t> back;
  };
  const SharedMemory memory(sizeof(Flags));
  auto& flags = memory.at<Flags>(0);
  tools::Summary half;
  in_two_processes(
      how.cpus,
      [&] {
        for (std::uint64_t i = 1; i <= warm_up_of(how.rounds) + how.rounds; ++i) {
          wait_until(flags.there, i);
          flags.back.store(i, std::memory_order_release);
        }
      },
      [&] {
        half = latency_of(how.rounds, [&](std::uint64_t i) {
          flags.there.store(i + 1, std::memory_order_release);
          wait_until(flags.back, i + 1);
        });
      });
  return half;
}

double ring_rate(const How& how) {
  return rate_of(
      how,
      [](Rings& rings) {
        return [writer = Writer(rings.there), word = std::uint64_t{0}]() mutable {
          ++word;
          writer.write(reinterpret_cast<const std::byte*>(&word), sizeof word);
        };
      },
      [](Rings& rings) {
        return [reader = Reader(rings.there), word = std::uint64_t{0}]() mutable {
          reader.read(reinterpret_cast<std::byte*>(&word));
        };
      });
}

double stripped_rate(const How& how) {
  struct Sender {
    explicit Sender(Rings& rings) : end(rings.there, rings.back, sizeof(std::uint64_t)) {}
    void operator()() { end.send(); }
    StrippedEnd end;
  };
  struct Receiver {
    explicit Receiver(Rings& rings) : end(rings.back, rings.there, sizeof(std::uint64_t)) {}
    void operator()() { end.receive(); }
    StrippedEnd end;
  };
  return rate_of(
      how, [](Rings& rings) { return Sender(rings); }, [](Rings& rings) { return Receiver(rings); });
}

namespace {

// The counts of a ring of pieces, and the ring behind them.
struct Pieces {
  alignas(64) std::atomic<std::uint64_t> produced;  // in bytes
  alignas(64) std::atomic<std::uint64_t> consumed;
};
constexpr std::size_t kPiece = 8192;

// Moves the bytes of `count` messages piece by piece, beginning with `start`: `move(ring, own, bytes)` copies a piece
// once `ready(position)` says that it may.
template <typename Ready, typename Move, typename Done>
void piecewise(std::uint64_t& position, std::uint64_t count, std::vector<std::byte>& own, std::size_t bytes,
               std::size_t ring_bytes, Ready&& ready, Move&& move, Done&& done) {
  const std::size_t slots = own.size() / bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::byte* const message = own.data() + i % slots * bytes;
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      const std::size_t now = std::min(kPiece, bytes - at);
      for (Spin spin; !ready(position); spin.turn()) {
      }
      move(position % ring_bytes, message + at, now);
      position += kPiece;  // a smaller one has the room of a whole one
      done(position);
    }
  }
}

}  // namespace

double two_copies(const How& how, std::size_t bytes, std::size_t set, std::size_t ring_bytes) {
  const SharedMemory memory(sizeof(Pieces) + ring_bytes);
  auto& counts = memory.at<Pieces>(0);
  std::byte* const ring = memory.data() + sizeof(Pieces);
  const std::uint64_t warm_up = warm_up_of(how.rounds);
  double rate = 0;
  in_two_processes(
      how.cpus,
      [&] {
        std::vector<std::byte> own(set);
        std::uint64_t position = 0;
        piecewise(
            position, warm_up + how.rounds, own, bytes, ring_bytes,
            [&](std::uint64_t at) { return counts.produced.load(std::memory_order_acquire) > at; },
            [&](std::size_t at, std::byte* to, std::size_t now) { std::memcpy(to, ring + at, now); },
            [&](std::uint64_t at) { counts.consumed.store(at, std::memory_order_release); });
      },
      [&] {
        std::vector<std::byte> own(set);
        std::uint64_t position = 0;
        const auto send = [&](std::uint64_t count) {
          piecewise(
              position, count, own, bytes, ring_bytes,
              [&](std::uint64_t at) {
                return at + kPiece - counts.consumed.load(std::memory_order_acquire) <= ring_bytes;
              },
              [&](std::size_t at, std::byte* from, std::size_t now) { std::memcpy(ring + at, from, now); },
              [&](std::uint64_t at) { counts.produced.store(at, std::memory_order_release); });
          wait_until(counts.consumed, position);
        };
        send(warm_up);
        const std::uint64_t start_ns = tools::now_ns();
        send(how.rounds);
        rate = static_cast<double>(how.rounds * bytes) / seconds_since(start_ns);
      });
  return rate;
}

double one_copy(const How& how, std::size_t bytes, std::size_t set) {
  const SharedMemory target(set);
  double rate = 0;
  // The other process has touched the memory, and takes no part.
  in_two_processes(
      how.cpus, [&] { std::memset(target.data(), 1, set); },
      [&] {
        std::vector<std::byte> own(set);
        const std::size_t slots = set / bytes;
        const auto copy = [&](std::uint64_t count) {
          for (std::uint64_t i = 0; i < count; ++i) {
            std::memcpy(target.data() + i % slots * bytes, own.data() + i % slots * bytes, bytes);
            std::atomic_signal_fence(std::memory_order_seq_cst);  // so that none is left out
          }
        };
        copy(warm_up_of(how.rounds));
        const std::uint64_t start_ns = tools::now_ns();
        copy(how.rounds);
        rate = static_cast<double>(how.rounds * bytes) / seconds_since(start_ns);
      });
  return rate;
}

}  // namespace bench
