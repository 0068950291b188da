// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/unique_fd.h"
#include "nic/adapter.h"
#include "nic/budget.h"
#include "nic/soft/address_watch.h"
#include "nic/soft/finishing.h"
#include "nic/soft/strangers.h"
#include "nic/soft/wire/iwarp/chunk.h"
#include "nic/soft/wire/iwarp/parked.h"
#include "nic/soft/wire/iwarp/partings.h"
#include "nic/soft/wire/iwarp/turns.h"

namespace anydat::nic::soft {
class SoftAdapter;
}

namespace anydat::nic::soft::iwarp {

class Caller;
class Inquiry;
class TcpRequest;
class TcpStream;
class Transmitter;

// iWARP over TCP for one adapter instance: its sockets, and whose turn it is. No thread of its own: one epoll for all
// connections, which the engine sleeps on like on any descriptor.
//
// Thread safety: come_back() from any thread; all else with the engine held.
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
  // What has arrived is read into here, if it has no better place. One for all, since one thread reads at a time.
  std::span<std::byte> staging() { return {staging_.get(), kStagingBytes}; }
  ParkedTogether& parked() { return parked_; }
  // Memory for whoever has to keep what was in staging().
  std::vector<std::byte> take_spare();
  void give_spare(std::vector<std::byte> memory) noexcept;
  std::uint64_t passes() const { return passes_.load(std::memory_order_relaxed); }

  std::unique_ptr<Listener> listen(ConnQual qual, ListenerEvents& events, Status& status);
  ListenerEvents* listener(ConnQual qual) const;
  AddressWatch& address_watch() { return address_watch_; }
  void add_listener(ConnQual qual, ListenerEvents& events) { listeners_[qual] = &events; }
  void remove_listener(ConnQual qual) { listeners_.erase(qual); }

  // Connections, which are told of everything that happens to their sockets, once each time.
  bool watch(TcpStream& stream, int fd);
  void unwatch(TcpStream& stream, int fd);
  void come_back(Turn& turn);          // the next pass calls stream.turn()
  void come_back_in_time(Turn& turn);  // the same, for threads that do not hold the engine: it may be a while
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

  // For set-ups and ends.
  void called(base::UniqueFd socket, const Address& source, ConnQual qual);
  void finished(Caller& caller);
  // Asks for the stream which port is that service point's; it is told by TcpStream::inquired(), unless it abandons the
  // inquiry before. May throw std::bad_alloc.
  struct Begun {
    Status status = Status::no_memory;
    Inquiry* inquiry = nullptr;  // if the status is ok
    Address local{};             // where the questions come from, if any could be asked
  };
  Begun inquire(TcpStream& stream, const Address& remote, ConnQual qual);
  void finished(Inquiry& inquiry);
  void deliver(std::unique_ptr<TcpRequest> request, ListenerEvents& to);
  // Sees to it that what is in line still goes out, and then closes the socket.
  void part(base::UniqueFd socket, Transmitter rest, Stranger::Stage stage, const Address& source);
  void finished(Farewell& farewell);

  // PollSource, FdHandler
  bool poll() override;
  void arm() override { hush(false); }
  void disarm() override {}
  void ready(std::uint32_t events) override;

 private:
  static constexpr std::size_t kStagingBytes = 128 << 10;

  void begin_round();
  bool run_turns();
  bool look(bool has_asked);
  void heat(TcpStream& stream);
  void hush(bool on);
  bool look_at_all();
  void fetch_ready();
  bool others_than(const Turn& its, bool look);
  bool told_of_others(const Turn& its) const;
  void sweep();
  base::Nanoseconds silence_interval() const;
  void look_for_silence();

  SoftAdapter& adapter_;
  base::UniqueFd epoll_fd_;
  std::unique_ptr<std::byte[]> staging_;
  ChunkPool chunks_;
  std::unordered_set<TcpStream*> streams_;  // with a socket
  TcpStream* hot_ = nullptr;                // something has come for it not long ago
  unsigned streak_ = 0;                     // arrivals for it since anything came for another
  TcpStream* last_ = nullptr;               // the one that something has come for last
  unsigned in_a_row_ = 0;                   // arrivals for that one, before it is hot
  bool hushed_ = false;                     // epoll is not told of its arrivals
  ParkedTogether parked_;
  std::array<std::vector<std::byte>, 32> spare_;
  std::size_t spares_ = 0;
  unsigned looks_ = 0;
  unsigned vain_looks_ = 0;   // in a row
  bool owes_others_ = false;  // the hot one has had its turn
  std::array<epoll_event, budget::kReadyPerPass> events_;
  std::span<epoll_event> ready_;  // of those, which have not been told yet
  bool some_read_on_ = false;     // of those in line
  bool line_is_next_ = false;     // in this round: the others have had their turns
  bool stopped_ = false;          // the round, for those that have had word
  std::unordered_map<ConnQual, ListenerEvents*> listeners_;
  AddressWatch address_watch_;
  // Those that are over stay until nobody can be in a call of them.
  Finishing<Caller> callers_;
  Finishing<Inquiry> inquiries_;
  Partings partings_;
  std::atomic<std::uint64_t> passes_{0};

  Timer silence_timer_;

  Timer sweep_timer_;

  Turns turns_;
  std::atomic<bool> somebody_waits_{false};  // for a turn
};

}  // namespace anydat::nic::soft::iwarp
