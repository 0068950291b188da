// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nic/soft/own_pages.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/outgoing_half.h"
#include "nic/soft/wire/iwarp/terms.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// The requester's half of a connection over TCP: how the program's requests go out, and what the peer's answers say of
// them.
//
// A small Send is done when the socket has it, or, in a row of them, when it is in line for it. A large one is when a
// peer of our kind says that it has been delivered; another peer says nothing, and there it is done as a small one. A
// Write is done when the peer has answered something that came behind it, so that what it refuses can be told of the
// Write that was at fault.
//
// Thread safety: requests come with the lock of the send queue, and what is about answers with the engine held; both
// take the lock of the outgoing half for what they share. Lives and dies with its stream.
class Requester final : private OwnPages::User {
 public:
  explicit Requester(TcpStream& stream);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // ---- requests, as in Stream
  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress);
  bool send_again(const SingleSend& send);
  std::size_t send_row(const SendRow& row);
  void bring() { sources_.bring(); }  // as OwnPages; with the engine

  // ---- set-up
  // All the memory that so many Reads at once need, and Sends to go on with. May throw std::bad_alloc.
  void reserve(std::size_t reads);
  // With the lock of the outgoing half, whose name where it is taken is another than here.
  void settle(const Terms& terms) ANYDAT_NO_ANALYSIS { terms_ = terms; }
  void peer_is_ours() ANYDAT_NO_ANALYSIS { peer_is_ours_ = true; }
  // A Read of length 0, which touches no memory, and comes behind the Writes: the peer answers it. False: no memory.
  bool ask_for_nothing() ANYDAT_NO_ANALYSIS;
  // The same where Writes are to be answered behind which no Read has gone out yet; without memory the stream's turn
  // comes here.
  void ask_for_answer() ANYDAT_NO_ANALYSIS;

  // ---- answers that arrive
  // A segment of one: nothing, or why it is refused. `wanted`: by the Read that it is for.
  std::optional<TerminateCode> begin_read_response(const SegmentHeader& segment, std::size_t payload_bytes,
                                                   bool& wanted);
  std::optional<TerminateCode> begin_atomic_response(const SegmentHeader& segment, std::size_t payload_bytes);
  // Where its bytes go, the next of which come behind so many of the same segment; as RequestOutcomes::aim_read().
  // Nothing: the Read has failed, and the rest of its answer is not wanted.
  std::optional<std::size_t> aim(std::size_t skipped, std::size_t count, std::span<iovec> pieces);
  bool wanted() const { return !answer_unwanted_; }
  void read_failed();  // for want of memory, like atomic_failed()
  void atomic_failed();
  // It is there. Nothing, or why it is refused.
  void read_response_ended(std::size_t payload_bytes, bool last);
  std::optional<TerminateCode> atomic_response_ended(std::span<const std::byte> payload);
  // The peer has them.
  void delivered_up_to(std::uint32_t sequence);
  // The peer refuses the message that this header began. False: it is not known which of the requests that was.
  bool refused(const SegmentHeader& offender, CloseReason reason);

 private:
  // Keys for the sinks of Reads, which are good for the answer alone. 0 is no key: no Read has been asked for.
  class SinkKeys {
   public:
    explicit SinkKeys(std::uint32_t first) : next_(first) {}
    std::uint32_t next() {
      const std::uint32_t key = next_ != 0 ? next_ : 1;
      next_ = key + 1;
      return key;
    }

   private:
    std::uint32_t next_;
  };

  // A Read that this side has asked for: the consumer's, or one of length 0 that makes the peer answer.
  struct Asked {
    std::uint32_t stag;    // of the sink, made up
    std::uint32_t writes;  // that went out before it, and are answered with it
    std::uint32_t length;  // a Read of more cannot be asked for (RFC 5040, section 4.4)
    bool ours;             // the library wants it, not the program
    bool atomic = false;   // it is an atomic operation, and `stag` what its response is known by
  };
  struct Unconfirmed {
    std::uint32_t sequence;
    std::uint64_t number;  // of the request
  };
  struct NamedRead {
    std::size_t before;  // of the program's, that are answered before it
    bool ours;           // it is none of the program's, and none of those is to blame
  };

  SendOutcome send_message(std::uint64_t number, const SendRequest& message, Progress& progress)
      ANYDAT_REQUIRES(outgoing_.lock());
  SendOutcome send_write(const SendRequest& message, Progress& progress) ANYDAT_REQUIRES(outgoing_.lock());
  SendOutcome send_read(const SendRequest& message, Progress& progress) ANYDAT_REQUIRES(outgoing_.lock());
  SendOutcome send_atomic(const ExtendedRequest& message, Progress& progress) ANYDAT_REQUIRES(outgoing_.lock());
  bool send_immediate(const SendRequest& message) ANYDAT_REQUIRES(outgoing_.lock());
  bool send_some(const SegmentHeader& first, const SendRequest& message, Progress& progress)
      ANYDAT_REQUIRES(outgoing_.lock());
  [[gnu::noinline]] bool send_part(const SegmentHeader& first, const SendRequest& message, Progress& progress)
      ANYDAT_REQUIRES(outgoing_.lock());
  [[gnu::noinline]] bool wait_for_room() ANYDAT_REQUIRES(outgoing_.lock());
  bool request_read(const Asked& asked, const RemoteSegment& source) ANYDAT_REQUIRES(outgoing_.lock());
  bool make_room() ANYDAT_REQUIRES(outgoing_.lock());
  bool may_ask() const ANYDAT_REQUIRES(outgoing_.lock());
  Asked oldest_asked();
  std::optional<TerminateCode> answer_completed(std::span<const std::byte> payload);
  bool one_delivered(std::uint32_t sequence);
  bool writes_complete_early();
  std::optional<NamedRead> find_asked(std::uint32_t sequence);
  void wants_pages() override;
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;

  TcpStream& stream_;
  OutgoingHalf& outgoing_;
  OwnPages sources_;  // of what is sent; looked for with the lock of the outgoing half

  // With the engine.
  std::uint64_t answer_bytes_ = 0;                     // whole segments of the Read Response that is arriving
  std::uint32_t responses_expected_ = kFirstSequence;  // of atomic operations
  bool answer_unwanted_ = false;                       // the request has failed meanwhile

  Terms terms_ ANYDAT_GUARDED_BY(outgoing_.lock());
  bool peer_is_ours_ ANYDAT_GUARDED_BY(outgoing_.lock()) = false;
  bool asked_for_answer_ ANYDAT_GUARDED_BY(outgoing_.lock()) = false;
  std::uint32_t send_sequence_ ANYDAT_GUARDED_BY(outgoing_.lock()) = kFirstSequence;
  std::uint32_t request_sequence_ ANYDAT_GUARDED_BY(outgoing_.lock()) = kFirstSequence;
  std::uint32_t writes_unasked_ ANYDAT_GUARDED_BY(outgoing_.lock()) = 0;  // with nothing behind them yet
  SinkKeys sinks_ ANYDAT_GUARDED_BY(outgoing_.lock());
  std::vector<Unconfirmed> unconfirmed_ ANYDAT_GUARDED_BY(outgoing_.lock());
  std::vector<Asked> asked_ ANYDAT_GUARDED_BY(outgoing_.lock());
};

}  // namespace anydat::nic::soft::iwarp
