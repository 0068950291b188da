// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "nic/soft/send_queue.h"

namespace anydat::nic::soft {

// What becomes of the requests that a queue pair's stream holds: the peer has done them, has answered with bytes, or
// refuses them. It ends the connection where a request fails, as soon as all before it are done (DTO-40).
//
// With the engine held, and without the send lock. Lives and dies with its queue pair.
class RequestOutcomes {
 public:
  RequestOutcomes(SoftQueuePair& queue_pair, SendQueue& sends) : queue_pair_(queue_pair), sends_(sends) {}
  RequestOutcomes(const RequestOutcomes&) = delete;
  RequestOutcomes& operator=(const RequestOutcomes&) = delete;

  // ---- done
  // If it has failed, so that nothing can follow it, the connection breaks at once, with what is not done before it.
  void finished(std::uint64_t number, WorkStatus status);
  // The oldest Writes that the stream holds, so many, have been done by the peer. False if there are fewer.
  bool writes_finished(std::uint32_t count);

  // ---- answered: atomic operations
  // The oldest one that the stream holds has been done; what the word was. False if there is none.
  bool atomic_finished(std::uint64_t was);
  // Where what the word was is to be put. 0 pieces: there is no such operation, or its memory has been freed since.
  std::size_t aim_atomic(std::span<iovec> pieces);
  void atomic_failed(WorkStatus status);  // as read_failed()

  // ---- answered: Reads
  // The next bytes of the oldest Read that the stream holds. False if there is none, or it wants fewer.
  bool place_read(const std::byte* bytes, std::size_t count);
  // The same in two steps, as aim(), for the bytes that follow `skipped` ones. 0 pieces: there is no such Read.
  // Nothing: its memory has been freed since; read_failed() is due.
  std::optional<std::size_t> aim_read(std::size_t skipped, std::size_t count, std::span<iovec> pieces);
  bool read_placed(std::size_t count);  // false as place_read()
  // Its memory is not to be had any more. Requests before it are still done; then the connection breaks.
  void read_failed(WorkStatus status);

  // ---- refused
  // The peer refuses a Write that reaches there, or a Read (an atomic operation): the Writes before it have been done.
  // It has failed with that status, and the end of the connection is due; Reads before it that have no answer get none.
  // False: it is none that we know.
  bool write_refused(std::uint32_t key, std::uint64_t address, WorkStatus status);
  bool read_refused(std::size_t before_it, WorkStatus status);
  // The same of one that is known by its number, or by how many of its kind that the stream holds come before it.
  void request_refused(std::uint64_t number, WorkStatus status);
  bool request_refused(bool (*wanted)(WorkKind), std::size_t before_it, WorkStatus status);
  // The same of a message, a Send or a Write with immediate data: so many have been sent from that one on, none if it
  // is still being sent. The messages before it have been done, too. `sent` is called with the send lock, so that none
  // is sent meanwhile.
  void message_refused(const std::function<std::uint32_t()>& sent, WorkStatus status);

  void reset() { unwanted_ = 0; }  // to no connection

 private:
  bool oldest_finished(bool (*wanted)(WorkKind), std::uint32_t count = 1);
  void fail_oldest(bool (*wanted)(WorkKind), WorkStatus status);
  SendRing::Entry* oldest_read() ANYDAT_REQUIRES(sends_.lock());
  template <typename Culprit>
  bool refused(Culprit&& culprit, WorkStatus status);

  SoftQueuePair& queue_pair_;
  SendQueue& sends_;
  std::uint64_t unwanted_ = 0;  // bytes that are still to come for a Read that has failed
};

}  // namespace anydat::nic::soft
