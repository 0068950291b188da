// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nic/adapter.h"
#include "nic/soft/stream.h"
#include "nic/timer.h"

namespace anydat::nic::soft {

class SoftAdapter;
class SoftQueuePair;

// How a connection comes about, at either side, or comes to nothing.
//
// With the engine held. Lives and dies with its queue pair.
class Establishment {
 public:
  Establishment(SoftQueuePair& queue_pair, SoftAdapter& adapter, QueuePairEvents& events);
  ~Establishment();
  Establishment(const Establishment&) = delete;
  Establishment& operator=(const Establishment&) = delete;

  // ---- active side
  Status connect(const ConnectParameters& parameters);
  // The peer cannot be reached by the stream's wire, and the program has not been told: another wire may do.
  // It takes the place of the stream in a task, so that the stream may call this.
  void try_another_wire(const ConnectParameters& parameters);
  void failed(ConnectFailure why, std::span<const std::byte> private_data = {});
  std::vector<std::byte> take_rejection() { return std::exchange(rejection_, {}); }

  // ---- passive side
  void accept(std::unique_ptr<Stream> stream, ConnectionNames names);
  // How long the peer may take for its part.
  void expect_by(os::Nanoseconds deadline);
  void accept_failed();

  // ---- either side
  void done(std::span<const std::byte> private_data);
  void stop();  // there is, or will be, nothing to wait for

 private:
  struct OtherWire;

  void connect_again();
  void connect_by_other_wire();
  void timed_out();

  SoftQueuePair& queue_pair_;
  SoftAdapter& adapter_;
  QueuePairEvents& events_;
  // The attempt of ConnectParameters::patience, if one was made.
  struct Attempt {
    ConnectParameters parameters;
    std::vector<std::byte> private_data;
    std::string adapter;
    os::Nanoseconds until;
  };
  std::unique_ptr<Attempt> attempt_;
  std::unique_ptr<OtherWire> other_wire_;  // from try_another_wire() until the connection stands, or another begins
  std::vector<std::byte> rejection_;       // the private data that came with it, until it is reported
  Timer again_timer_;
  Timer deadline_timer_;
};

}  // namespace anydat::nic::soft
