// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "dapl/attributes.h"
#include "dapl/ep_configuration.h"
#include "dapl/ep_connection.h"
#include "dapl/ep_posts.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Srq;

// An endpoint: the DAT state machine and rules around a queue pair. What is posted is in EpPosts, its objects and
// attributes are in EpConfiguration, and its connection is in EpConnection, which the queue pair reports to. Here is
// how an endpoint comes and goes, and what is told of all of it.
//
// Thread safety: posts and the queries marked so may come from any thread; all else is called with the engine held, and
// so are the queue pair's reports.
class Ep final : public Object {
 public:
  static constexpr HandleType kType = HandleType::ep;

  Ep(Ia& ia, Srq* srq);
  ~Ep() override;

  // `attr` may be null for the defaults, unless there is an SRQ.
  static Error create(Ia& ia, const EpParts& parts, Srq* srq, const EpAttributes* attr, Handle* handle);
  // A provider-made endpoint for a connection request (PSP-CREATE-6): no parts, TENTATIVE.
  static Ep* create_tentative(Ia& ia);

  EpPosts& posts() { return posts_; }
  const EpPosts& posts() const { return posts_; }
  EpConfiguration& configuration() { return configuration_; }
  EpConnection& connection() { return connection_; }
  const EpConnection& connection() const { return connection_; }
  Srq* srq() const { return srq_; }  // null: its buffers are its own

  // From any thread.
  const char* wire() const;  // of its connection; null if there is none
  struct ReceiveCounts {     // EP-RQ; kUnknownCount for what the NIC cannot tell
    Count allocated;
    Count span;
  };
  ReceiveCounts recv_query() const;
  EpState state() const { return state_machine().state(); }
  EpStateMachine& state_machine() { return posts_.state_machine(); }
  const EpStateMachine& state_machine() const { return posts_.state_machine(); }
  nic::QueuePair& queue_pair() const { return *posts_.queue_pair(); }
  // Whether all receives or requests have completed, which is to say that their events are queued. Without the engine.
  bool receives_idle() const;
  bool requests_idle() const;

  // With the engine held.
  EpParameters query() const;
  // Nothing: a peer is in the middle of writing into a buffer; ask again, with the engine released in between.
  std::optional<Error> free();
  bool cut() { return !posts_.queue_pair() || queue_pair().cut(); }
  void shut_down();

 private:
  // False: there is no memory for it.
  bool open_queue_pair(const EpAttributes& attr);

  Srq* const srq_;
  EpConnection connection_;  // before the posts, whose queue pair it must outlive
  EpPosts posts_;
  EpConfiguration configuration_;
};

}  // namespace anydat::dapl
