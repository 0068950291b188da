// SPDX-License-Identifier: BSD-3-Clause
// The seam: what a DAT object may ask of an RDMA NIC, in a few abstract classes shaped like verbs, and the interfaces
// by which a NIC reports back. DAT objects implement the *Events and CompletionQueue classes.
//
// Locking: unless a method says otherwise it is called with the adapter's engine held, and so are all reports but
// completions, which may come from a posting thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/counter.h"
#include "nic/completion_queue.h"
#include "nic/engine.h"
#include "nic/private_data_limits.h"
#include "nic/receive_queue.h"
#include "nic/region_table.h"
#include "nic/types.h"

namespace anydat::nic {

class QueuePair;

// Why a connection attempt came to nothing (the cause, not the DAT event).
enum class ConnectFailure : std::uint8_t { rejected_by_peer, refused, unreachable, timed_out };

// What a bind came to, told before its completion; and its end, if this side has not asked for that.
class WindowEvents {
 public:
  virtual ~WindowEvents() = default;
  // The bind with that tag has been carried out, or, if not `bound`, never will be. May come before post_bind()
  // returns.
  virtual void on_bind(std::uint64_t tag, bool bound) = 0;
  // What that bind has shown cannot be reached any more: the connection of its queue pair has ended, or its peer has
  // invalidated the key, both of windows of one queue pair; or it was taken away for a bind that then came to nothing.
  // May come before post_bind() returns, too.
  virtual void on_unbound(std::uint64_t tag) = 0;
};

// Who may use a window: every queue pair of its zone, or the one alone by which it has been bound.
enum class WindowScope : std::uint8_t { zone, queue_pair };

// A memory window: a part of a region, opened to peers under a key of its own, one after another.
//
// Lives until every bind that was posted of it has been reported.
class Window {
 public:
  virtual ~Window() = default;
  // Binds still pending will have no effect, and succeed. True: nothing can be reached through it any more, and no peer
  // is in the middle of that. False: a peer is; ask again, with the engine released in between.
  virtual bool close() = 0;
};

// What a bind needs and takes long to make. It may take as long to go, so it goes without the engine.
struct PreparedBind {
  virtual ~PreparedBind() = default;
};

struct BindRequest {
  std::uint64_t cookie;
  void* owner;        // named in the completion instead of that of the queue pair
  std::uint64_t tag;  // comes back in on_bind()
  Window* window;
  Segment part;  // of a region, whose key it names; of length 0: nothing shall be reachable
  std::uint32_t rights;
  WorkFlags flags;
  // By an adapter that prepares binds, for this part and these rights; it is used up. Null: the part is empty, or there
  // is no memory for it.
  PreparedBind* prepared = nullptr;
};

class QueuePairEvents {
 public:
  virtual ~QueuePairEvents() = default;
  // Named in each completion. Fixed before the queue pair is created.
  void* owner = nullptr;
  virtual void on_established(std::span<const std::byte> private_data) = 0;
  // Active side. All posted receives have been flushed. `private_data` came with the rejection; of other failures there
  // is none.
  virtual void on_connect_failed(ConnectFailure why, std::span<const std::byte> private_data) = 0;
  // Passive side, between accept and establishment.
  virtual void on_accept_failed() = 0;
  // The connection is over and everything posted has completed or been flushed. `broken`: by an error rather than by
  // either side's request.
  virtual void on_closed(bool broken) = 0;
  virtual void on_soft_watermark() = 0;
};

inline constexpr std::int32_t kUnlimited = -1;  // a watermark that is never exceeded

struct QueuePairLimits {
  std::uint32_t recv_depth;  // 0 with a shared receive queue
  std::uint32_t send_depth;
  std::uint32_t recv_segments;
  std::uint32_t send_segments;  // the most of all request kinds
  std::uint32_t reads_in;       // RDMA Reads of the peer that may be under way at once
  std::uint32_t reads_out;      // of ours
};

// A service point that has accepted a request: its qualifier, and the NIC's own word for which of the adapters that
// serve one address it belongs to.
struct ServicePointName {
  ConnQual qual = 0;
  std::string adapter;
};

// The names of a connection, from where this end sees it.
struct ConnectionNames {
  Address local{};
  Address remote{};
  std::uint64_t local_port = 0;
  std::uint64_t remote_port = 0;
  // Of an established connection that this end asked for: the service point that accepted, which need not be the one
  // that was asked. Its qualifier is 0 if the peer asked.
  ServicePointName reached;
};

struct ConnectParameters {
  Address remote;
  ConnQual qual;
  os::Nanoseconds deadline;  // os::kForever: none
  std::span<const std::byte> private_data;
  std::uint32_t qos;
  std::string_view adapter;  // as in ServicePointName; empty: whichever has a service point there
  // How long a request that is refused is made again, for a service point that is about to be made. An adapter whose
  // device takes its time to find the way asks once.
  os::Nanoseconds patience = 0;
};

// A request that arrived at a listener. Destroying it unanswered rejects it.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual const Address& remote_address() const = 0;
  virtual std::uint64_t remote_port() const = 0;
  virtual const Address& local_address() const = 0;
  virtual std::span<const std::byte> private_data() const = 0;
  // on_established or on_accept_failed of the queue pair follows, also when the requester is gone already. May throw
  // std::bad_alloc; the request is unanswered then.
  virtual void accept(QueuePair& queue_pair, std::span<const std::byte> private_data) = 0;
  // Requires: no more private data than AdapterInfo::reject_data_max.
  virtual void reject(std::span<const std::byte> private_data) = 0;
  // Passes it to the service point of this adapter that listens on `qual`, in this process or another, as if it had
  // arrived there (CR-HO-1). unreachable: no service point listens there, and the request is as it was.
  virtual Status hand_off(ConnQual qual) = 0;
};

// One end of a reliable connection.
//
// post_send, post_recv, the counts and counters may be called by any thread without the engine.
class QueuePair {
 public:
  struct RecvInfo {
    static constexpr std::uint32_t kUnknown = ~0u;  // for both: the NIC cannot tell
    std::uint32_t allocated;                        // buffers given to it and not completed (EP-RQ-1)
    std::uint32_t span;                             // EP-RQ-6
  };
  struct Counters {
    base::Counter sends;
    base::Counter send_bytes;
    base::Counter writes;
    base::Counter write_bytes;
    base::Counter reads;
    base::Counter read_bytes;
    base::Counter write_immediates;
    base::Counter write_immediate_bytes;
    base::Counter fetch_adds;
    base::Counter compare_swaps;
    base::Counter rdmas_in_memory;  // of rdmas(), those that were plain copies in memory
    base::Counter rdmas_by_peer;    // of them those that the peer was given to do because it polls
    base::Counter binds;
    base::Counter receives;  // that a Send has filled
    base::Counter receive_bytes;
    base::Counter immediates;       // receives that a Write with immediate data has taken
    base::Counter immediate_bytes;  // of these Writes
    base::Counter buffer_waits;     // messages that had to wait for a receive buffer
    base::Counter buffer_wait_ns;
    base::Counter soft_watermark_events;

    // Counts a request that is no Send and no bind.
    [[gnu::always_inline]] void count_rdma(WorkKind kind, std::uint64_t length) {
      if (kind == WorkKind::rdma_write) {
        writes.add();
        write_bytes.add(length);
      } else if (kind == WorkKind::rdma_read) {
        reads.add();
        read_bytes.add(length);
      } else if (kind == WorkKind::write_immediate) {
        write_immediates.add();
        write_immediate_bytes.add(length);
      } else {
        (kind == WorkKind::fetch_add ? fetch_adds : compare_swaps).add();
      }
    }
    // Of all kinds.
    std::uint64_t rdmas() const { return writes.get() + reads.get() + write_immediates.get() + atomics(); }
    std::uint64_t rdma_bytes() const {
      return write_bytes.get() + read_bytes.get() + write_immediate_bytes.get() + atomics() * sizeof(std::uint64_t);
    }
    std::uint64_t all_receives() const { return receives.get() + immediates.get(); }

   private:
    std::uint64_t atomics() const { return fetch_adds.get() + compare_swaps.get(); }
  };
  struct PostedReceives {
    std::uint64_t count;
    std::uint64_t bytes;
  };

  virtual ~QueuePair() = default;

  // Segments have been checked by the caller; an adapter that executes the work later checks them again.
  virtual Status post_send(const SendRequest& request) = 0;
  // For a Write or Read of at least one byte whose memory has not been checked. True: it goes between the same regions
  // as those before it, nothing is wrong with it, and it has been done and completed. False: nothing has happened, and
  // post_send() shall have it.
  virtual bool write_again(const SingleRdma&) { return false; }
  virtual bool read_again(const SingleRdma&) { return false; }
  // The same for a Send from the region of the one before it.
  virtual bool send_again(const SingleSend&) { return false; }
  virtual Status post_recv(const RecvRequest& request) = 0;
  // Rows: as if the calls above had them one by one, until one is refused. `posted` is how many were not, and the
  // status is that of the first that was.
  virtual Status post_sends(const SendRow& row, std::size_t& posted) {
    for (posted = 0; posted < row.sends.size(); ++posted) {
      if (const Status status = post_send(row.request(posted)); status != Status::ok) return status;
    }
    return Status::ok;
  }
  virtual Status post_recvs(const RecvRow& row, std::size_t& posted) {
    for (posted = 0; posted < row.receives.size(); ++posted) {
      if (const Status status = post_recv(row.request(posted)); status != Status::ok) return status;
    }
    return Status::ok;
  }
  // A request that not every peer can carry out, else as post_send(). unsupported: the peer cannot, and has been told
  // nothing (D2-EXT-8).
  virtual Status post_extended(const ExtendedRequest&) { return Status::unsupported; }
  // What the other side of an established connection carries out, of what this adapter can (`ability`). Any thread.
  virtual std::uint32_t peer_takes() const { return 0; }
  // Whether the object that completions go to can show a receive that a Write with immediate data has taken; the other
  // side is told with the next connection.
  virtual void take_immediates(bool) {}
  // `key` is what peers may use once the bind has completed, and never 0 but for a bind that has been flushed already
  // and will not be reported to the window. With the engine held.
  virtual Status post_bind(const BindRequest& request, std::uint32_t& key) = 0;
  // What its windows alone have in the place of a zone (WindowScope::queue_pair); kNoZone: it has none.
  virtual ZoneId scope() const { return kNoZone; }

  virtual void set_zone(ZoneId zone) = 0;
  virtual void set_completion_queues(CompletionQueue* recv, CompletionQueue* send) = 0;
  // Keeps posted receives. Requires: no more posted than the new limits allow (the caller has asked).
  virtual Status set_limits(const QueuePairLimits& limits) = 0;
  virtual void set_watermarks(std::int32_t soft, std::int32_t hard) = 0;

  virtual Status connect(const ConnectParameters& parameters) = 0;
  // Of a connected queue pair: on_closed(false) follows, after the send queue has drained if `graceful`. Of one that is
  // still connecting or being accepted: everything is flushed and on_closed(false) called, at once if memory is free.
  virtual void disconnect(bool graceful) = 0;
  // From closed back to the state after creation.
  virtual void reset() = 0;
  // Cuts every tie without any further report. True when nothing touches the memory of posted work any longer; false
  // while the peer is in the middle of writing into it: ask again, with the engine released in between.
  virtual bool cut() = 0;
  // Requires: cut() has answered true, or it was never connected.
  virtual void destroy() = 0;

  // They stay where they are, for callers to point at (EP-QUERY-5).
  virtual const ConnectionNames& names() const = 0;
  // What carries the connection, in a word that lasts; null while there is none. With the engine held.
  virtual const char* wire() const = 0;
  virtual RecvInfo recv_info() const = 0;
  virtual std::uint32_t largest_posted_recv_segments() const = 0;
  virtual bool recv_idle() const = 0;
  virtual bool send_idle() const = 0;
  virtual const Counters& counters() const = 0;
  // Ever posted to the queue pair itself; none with a shared receive queue.
  virtual PostedReceives posted_receives() const = 0;
};

class ListenerEvents {
 public:
  virtual ~ListenerEvents() = default;
  // False: no room for it, the requester is refused.
  virtual bool on_request(std::unique_ptr<ConnectionRequest>& request) = 0;
};

// Listens from its creation to its destruction, or to stop().
class Listener {
 public:
  virtual ~Listener() = default;
  virtual ConnQual qual() const = 0;
  // Listens no more, but keeps the qualifier from being used by others. Needs no memory: the request that it is stopped
  // for has been announced.
  virtual void stop() = 0;
};

// What an adapter has room for. The DAT objects have limits of their own as well; the smaller one holds. The software
// NIC needs none.
struct AdapterLimits {
  std::uint64_t queue_pairs = ~std::uint64_t{0};
  std::uint64_t send_depth = ~std::uint64_t{0};  // of one queue pair; so is recv_depth
  std::uint64_t recv_depth = ~std::uint64_t{0};
  std::uint64_t reads = ~std::uint64_t{0};  // of one queue pair, under way in one direction
  std::uint64_t segments = ~std::uint64_t{0};
  std::uint64_t regions = ~std::uint64_t{0};
  std::uint64_t region_bytes = ~std::uint64_t{0};
  std::uint64_t message_bytes = ~std::uint64_t{0};
  std::uint64_t receive_queues = ~std::uint64_t{0};
  std::uint64_t receive_queue_depth = ~std::uint64_t{0};
};

// What is shown of the device and of its port (D2-IA-7). A software adapter has no number of its own in the world, and
// one port; a message of that many bytes need never be cut by the program.
struct DevicePort {
  std::uint64_t node_guid = 0;  // 0: there is none
  std::uint32_t number = 1;
  std::uint32_t mtu = 2048;
  const char* state = "ACTIVE";
};

struct AdapterInfo {
  std::string name;
  Address address;
  std::uint32_t qos_supported;
  std::uint32_t private_data_max = kPrivateDataMax;
  std::uint32_t reject_data_max = kPrivateDataMax;  // the same of a rejection
  AdapterLimits limits{};
  DevicePort port{};
  // What hardware need not be able to do; DAT's provider attributes announce it (ATTR-1).
  bool counts_taken_buffers = true;      // how many buffers of a shared queue one queue pair has taken: RecvInfo
  bool has_watermarks = true;            // set_watermarks() does what it says
  bool zero_based = false;               // access::kZeroBased
  bool queue_pair_windows = false;       // WindowScope::queue_pair
  std::uint32_t abilities = 0;           // `ability`: to ask for and to carry out
  bool shared_queue_of_any_zone = true;  // a queue pair may use a receive queue of another zone
  // The same, announced by attributes of our own.
  os::Nanoseconds receiver_not_ready_ns = os::kForever;  // how long a message waits for a buffer (SRQ-ARR-3)
  bool sends_complete_at_receiver = false;               // when the peer has taken them, not when they have left
  bool tells_solicited = true;      // Completion::solicited is what the sender said, not always true
  bool tells_remote_errors = true;  // what the other side refuses fails with its own status
  bool confirms_accepts = true;     // an accept completes when the active side has confirmed it
  bool tells_deaths = true;         // the end of a peer is told from its wish to end
};

// A region's names: what local segments say, and what peers are told.
struct RegionKeys {
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
};

// What befalls an adapter by itself.
class AdapterEvents {
 public:
  virtual ~AdapterEvents() = default;
  // It has failed as a whole: its connections are over, and there will be no others.
  virtual void on_failure() = 0;
  // A part of it has failed. The connections that needed it have ended, the others go on.
  virtual void on_fault() = 0;
};

class Adapter {
 public:
  virtual ~Adapter() = default;

  // What is told from now on; null: nothing is.
  void report_to(AdapterEvents* events) { events_ = events; }

  // None of these three needs the engine held.
  virtual const AdapterInfo& info() const = 0;
  virtual Engine& engine() = 0;
  // What the segments of a post are checked against.
  virtual const RegionTable& regions() = 0;

  // Opens memory to posted work and, as far as the rights say, to peers. Without the engine, since it may take long.
  // The region's address is that of its first byte, whatever it is named by; segments of posted work always have
  // addresses, and the caller that posts finds them by RegionTable::resolve().
  virtual Status add_region(const Region& region, RegionKeys& keys) = 0;
  // No check finds the region with this local key any longer, and no peer can begin to use it. May be repeated.
  virtual void remove_region(std::uint32_t key) = 0;
  // To be called after remove_region(). True when neither this process nor a peer acts any longer on a check() that
  // came before. False while a peer is in the middle of using the memory: ask again, with the engine released in
  // between. `open_to_peers`: the region had rights for them; of one that had none they are not asked.
  virtual bool quiesce(std::uint32_t key, bool open_to_peers) = 0;
  // For a call that quiesce() or cut() has told to ask again, without the engine: comes back when the answer may be
  // another.
  virtual void await_quiet() { engine().waiting().pause(); }

  // Whether binds take what takes long, and is to be done before them, without the engine.
  virtual bool prepares_binds() const { return false; }
  // That, for a part that is not empty; null if it cannot be had.
  virtual std::unique_ptr<PreparedBind> prepare_bind(ZoneId, const Segment&, std::uint32_t /*rights*/) {
    return nullptr;
  }
  // Posted Reads put what they read into windows, from now on. By any thread, before it looks up the window; posts that
  // began earlier need not be waited for when a window is taken back.
  virtual void expect_reads_into_windows() {}
  // Null when out of memory. `scope` is what AdapterInfo says is there.
  virtual std::unique_ptr<Window> create_window(ZoneId zone, WindowScope scope, WindowEvents& events) = 0;

  // Null when out of memory. `shared` is the shared receive queue, or null. It and `events` outlive the result.
  virtual std::unique_ptr<QueuePair> create_queue_pair(const QueuePairLimits& limits, ReceiveQueue* shared,
                                                       QueuePairEvents& events) = 0;
  virtual std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth, std::uint32_t segments, ZoneId zone,
                                                             ReceiveQueueEvents& events) = 0;
  // qual 0 picks one. On failure the result is null and `status` tells why.
  virtual std::unique_ptr<Listener> listen(ConnQual qual, ListenerEvents& events, Status& status) = 0;

 protected:
  AdapterEvents* events_ = nullptr;  // with the engine held
};

}  // namespace anydat::nic
