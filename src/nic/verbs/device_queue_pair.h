// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

class Cq;
class SharedQueue;
class VerbsAdapter;
class VerbsQueuePair;
struct AbandonedAttempt;

// The queue pair of the device under one of ours, with its protection domain and its room for completions. It is there
// from the set-up of a connection to its end, so that its sizes and its peer are those of the moment. What is posted
// goes to it as long as SendQueue and ReceiveSide know it.
//
// With the engine held. Lives and dies with its queue pair.
class DeviceQueuePair {
 public:
  DeviceQueuePair(VerbsQueuePair& queue_pair, VerbsAdapter& adapter);
  ~DeviceQueuePair();
  DeviceQueuePair(const DeviceQueuePair&) = delete;
  DeviceQueuePair& operator=(const DeviceQueuePair&) = delete;

  enum class Made : std::uint8_t { ready, no_memory, connection_over };
  Made make(rdma_cm_id* id);
  explicit operator bool() const { return qp_ != nullptr; }
  std::uint32_t number() const { return qp_->qp_num; }  // Requires: it is there.

  // How many Reads may be under way, where this side settles that.
  struct Reads {
    std::uint8_t in;
    std::uint8_t out;
  };
  // It can send and receive from now on.
  bool connect(rdma_cm_id* id, const std::optional<Reads>& settled);
  // It does neither any more, and gives back what it has.
  void fail();
  bool quiet() const;  // all that was given to it has been given back
  bool completes_to(const Cq* cq) const;
  bool receives_from(const SharedQueue& shared) const;

  // It goes, which takes a while: Connection::report_end() follows when it has gone. Requires: it is there.
  void remove();
  bool removing() const { return removed_number_ != 0; }
  // It was never made, or has gone: what was reserved for it goes.
  void release();
  // For one that has never been connected: it goes at once, or with its attempt.
  void discard();
  AbandonedAttempt take_apart();

 private:
  bool change_state(rdma_cm_id* id, ibv_qp_state state, const std::optional<Reads>& settled = {});
  void removed();

  VerbsQueuePair& queue_pair_;
  VerbsAdapter& adapter_;
  std::uint32_t tag_;  // in the names of work
  PdPtr pd_;
  Cq* cq_ = nullptr;
  std::uint32_t cq_room_ = 0;
  QpPtr qp_;
  std::uint32_t removed_number_ = 0;  // of the one that is being removed; 0: none is
};

}  // namespace anydat::nic::verbs
