// SPDX-License-Identifier: BSD-3-Clause
// The descriptors that strangers hold: sockets that are not a connection yet, or no longer one.
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "nic/types.h"
#include "os/clock.h"
#include "os/peer_process.h"

namespace anydat::nic::soft {

class Strangers;

// One such socket, from its accept to the moment when it is a connection's, or closed. Whatever owns it derives from
// this. With the engine held.
class Stranger {
 public:
  enum class Stage : std::uint8_t {
    silent,     // has called and said nothing
    talking,    // has said something, but not all
    asking,     // the program has the request and owes the answer
    leaving,    // has been refused, and the answer is on its way
    lingering,  // was a connection, and what it sent last is on its way
  };

  // How it has come. What is passed over a local socket may be left to be closed.
  enum class By : std::uint8_t { local_socket, tcp };

  // `source`: the host at the other end, or, by a local socket, the process of this one (os/peer_process.h).
  Stranger(Strangers& all, const Address& source, Stage stage);
  Stranger(Strangers& all, os::PeerName source, Stage stage);
  virtual ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void enter(Stage stage);  // neither from nor to lingering
  // Its socket is no stranger's any longer.
  void leave();
  Stage stage() const { return stage_; }

  // Its socket is wanted for another, and is closed when this returns.
  virtual void turn_out() = 0;

 private:
  friend class Strangers;
  struct Source {
    By way;
    std::uint64_t name;
  };
  Stranger(Strangers& all, Source source, Stage stage);

  Strangers& all_;
  const By way_;
  const std::uint16_t source_;
  Stage stage_;
  bool counted_ = true;
  os::Nanoseconds since_;  // in this stage
  base::ListLinks<Stranger> place_;
};

// All of one adapter. They have a share of the descriptors that the process may open, RLIMIT_NOFILE, so that the rest
// is left to the program and to its connections. The share is one for all adapters of the process.
//
// When the share is used up, a newcomer takes the place of one socket at most. Candidates, in this order: of the source
// with the most sockets, the one that has sent nothing for the longest time; of the source with the most sockets at the
// same stage, one that has been at that stage for too long, which is sooner if the source has many; one whose answer
// the program has owed for even longer. If none of them is old enough, the newcomer waits: no socket of another source
// gives way. An address that calls again and again so drives out itself, and no other. Local peers have half of the
// share at most, with what they have left behind (os/slow_close.h), and go for their like only; those who come over TCP
// have the whole of it while it is free, and go for a local one as long as they have more than half.
//
// Those that were connections have as much again, which is one for all adapters, too: their peers decide how long they
// take, within bounds, and are not to keep newcomers out by it. Beyond that each newcomer takes the place of one of its
// adapter, of the source with the most of them, unless that adapter has few; and so does each call of the program's
// own, by which a server that it calls again and again could fill its table. And there is a bound to how many an
// adapter has in any case. With the engine held.
class Strangers {
 public:
  Strangers();
  ~Strangers() = default;
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  using By = Stranger::By;

  // Whether there is room for one more, for which no other has to go.
  static bool has_room(By way);
  // Whether one more may come: there is room, or one in whose place it comes. None goes yet.
  bool may_come(By way);
  // A newcomer has come. True: in the place of another.
  bool one_has_come(By way);
  // The program wants a socket to call with: it is a newcomer as well, who does not wait.
  void one_calls();
  // So has one more end, and counts already: if they are too many, another is cut short.
  void one_lingers();

 private:
  friend class Stranger;
  using List = base::List<Stranger, &Stranger::place_>;
  static constexpr std::size_t kStages = 5;
  // Sources are told apart by a number that they cannot foresee. Two that have the same one share what they may have.
  static constexpr std::size_t kSources = 1024;
  using Counts = std::array<std::uint32_t, kSources>;

  static std::size_t share();
  bool too_many_part();
  Stranger* may_be_cut_short();
  const List& at(Stranger::Stage stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  List& at(Stranger::Stage stage) { return stages_[static_cast<std::size_t>(stage)]; }
  Counts& counts(Stranger::Stage stage, By way) {
    return stage == Stranger::Stage::lingering ? lingering_of_ : strangers_of_[static_cast<std::size_t>(way)];
  }
  std::uint16_t number_of(std::uint64_t source) const;
  void turn_out(Stranger& victim);
  std::uint32_t most_of_a_source(Stranger::Stage stage, By way);
  Stranger* oldest(Stranger::Stage stage, By way, std::uint32_t of_so_many, os::Nanoseconds age);
  Stranger* of_busiest_source(Stranger::Stage stage, By way, os::Nanoseconds age);
  Stranger* who_has_to_go(By way, std::size_t many);
  Stranger* who_goes_for(By way);

  std::uint64_t secret_ = 0;
  std::array<List, kStages> stages_;
  std::array<Counts, 2> strangers_of_{};  // a source, by either way
  Counts lingering_of_{};
  bool warned_ = false;
};

}  // namespace anydat::nic::soft
