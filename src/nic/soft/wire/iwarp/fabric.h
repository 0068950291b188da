// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "nic/adapter.h"
#include "nic/soft/wire/iwarp/busy_socket.h"
#include "nic/soft/wire/iwarp/chunk.h"
#include "nic/soft/wire/iwarp/ready_sockets.h"
#include "nic/soft/wire/iwarp/receive_backlog.h"
#include "nic/soft/wire/iwarp/setups_and_ends.h"
#include "nic/soft/wire/iwarp/staging.h"
#include "nic/soft/wire/iwarp/turns.h"

namespace anydat::nic::soft {
class SoftAdapter;
}

namespace anydat::nic::soft::iwarp {

class TcpStream;

// iWARP over TCP for one adapter instance: its sockets, and whose turn it is. No thread of its own: one epoll for all
// connections, which the engine sleeps on like on any descriptor.
//
// Thread safety: schedule_turn() from any thread; all else with the engine held.
class Fabric final : public PollSource, public FdHandler {
 public:
  explicit Fabric(SoftAdapter& adapter);
  ~Fabric() override;
  Status start();
  void shut_down();
  // The program has closed our descriptors: all connections are broken.
  void descriptors_lost();

  SoftAdapter& adapter() const { return adapter_; }
  Engine& engine() const;
  ChunkPool& chunks() { return chunks_; }
  Staging& staging() { return staging_; }
  ReceiveBacklogs& backlogs() { return backlogs_; }
  SetUpsAndEnds& setups_and_ends() { return setups_and_ends_; }
  std::uint64_t passes() const { return passes_.load(std::memory_order_relaxed); }

  std::unique_ptr<Listener> listen(ConnQual qual, ListenerEvents& events, Status& status);
  ListenerEvents* listener(ConnQual qual) const;
  void add_listener(ConnQual qual, ListenerEvents& events) { listeners_[qual] = &events; }
  void remove_listener(ConnQual qual) { listeners_.erase(qual); }

  // Connections, which are told of everything that happens to their sockets, once each time. False when the system has
  // no room for another, or the descriptors are not ours any more: then there are no turns either.
  bool watch(TcpStream& stream, int fd);
  void unwatch(TcpStream& stream, int fd);
  void schedule_turn(Turn& turn);      // the next pass calls stream.turn()
  void come_back_in_time(Turn& turn);  // the same, for threads that do not hold the engine: it may be a while
  void come_back_with_memory();        // the same of all, for one that lacks memory: it is tried by time
  void come_back_to_read(Turn& turn);  // the same behind all others; before it epoll is asked who has had word
  void keep_turn(Turn& turn);          // the same before all others but those that have had word
  void forget(Turn& turn) { turns_.forget(turn); }
  // Whether any other stream waits for its turn while that one has its own. Looks at the sockets if `look`.
  bool others_wait(const Turn& its, bool look) {
    const bool alone = streams_.size() <= 1 && turns_.left() == 0 && !somebody_waits_.load(std::memory_order_relaxed);
    return !alone && others_than(its, look);
  }
  // Whether others have had word, and no turn since, before what this one has just read has come; looks at the sockets.
  bool others_come_before(const Turn& its);
  // Streams note in which round they have had their turn, and have no other in it.
  std::uint32_t round() const { return turns_.round(); }
  bool had_turn(std::uint32_t round) const { return turns_.left() > 0 && round == turns_.round(); }

  // PollSource, FdHandler
  bool poll() override;
  void arm() override { busy_.unmask(); }
  void disarm() override {}
  void ready(std::uint32_t events) override;

 private:
  void begin_round();
  bool run_turns();
  bool look(bool has_asked);
  bool look_at_all();
  void fetch_ready();
  bool others_than(const Turn& its, bool look);
  os::Nanoseconds silence_interval() const;
  void look_for_silence();

  SoftAdapter& adapter_;
  ReadySockets ready_;
  BusySocket busy_{ready_};
  Staging staging_;
  ChunkPool chunks_;
  std::unordered_set<TcpStream*> streams_;  // with a socket
  std::vector<TcpStream*> unasked_;         // of them, some of which may have ended, in this round of looks for silence
  ReceiveBacklogs backlogs_;
  unsigned looks_ = 0;
  unsigned vain_looks_ = 0;    // in a row
  bool owes_others_ = false;   // the busy one has had its turn
  bool some_read_on_ = false;  // of those in line
  bool line_is_next_ = false;  // in this round: the others have had their turns
  bool stopped_ = false;       // the round, for those that have had word
  std::unordered_map<ConnQual, ListenerEvents*> listeners_;
  SetUpsAndEnds setups_and_ends_;
  std::atomic<std::uint64_t> passes_{0};
  Timer silence_timer_;
  Timer memory_timer_;
  Turns turns_;
  std::atomic<bool> somebody_waits_{false};  // for a turn
  std::atomic<bool> memory_lacked_{false};   // by one that is to have a turn later
};

}  // namespace anydat::nic::soft::iwarp
