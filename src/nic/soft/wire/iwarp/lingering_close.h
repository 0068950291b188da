// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/engine.h"
#include "nic/patience.h"
#include "nic/soft/strangers.h"
#include "nic/soft/wire/iwarp/transmitter.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::iwarp {

class Fabric;

// A socket whose connection is over, until the peer has what was sent last. Were it closed with bytes of the peer
// unread, TCP would throw away what the peer has not yet read.
//
// The peer decides neither how long that takes nor what it costs: there are bounds to the time without progress, the
// time in all, what is read in one turn and in all (nic/patience.h, nic/budget.h). Progress is what the peer's host
// acknowledges of ours; what the peer says is none.
class LingeringClose final : public FdHandler, public Stranger {
 public:
  LingeringClose(Fabric& fabric, os::UniqueFd socket, Transmitter rest, Stage stage, const Address& source);
  ~LingeringClose() override;
  void begin();
  void ready(std::uint32_t events) override;
  void turn_out() override;
  void cut();  // ends it now; what the peer has not taken is lost, and the peer is told so by a reset

  // While the adapter closes, one thread waits for all of them at once.
  void hurry(os::Nanoseconds now) { patience_ = Patience(kCloseIdle, kCloseTotal, now); }
  int socket() const { return socket_.get(); }
  short awaits() const;  // events of poll(2)
  void look(os::Nanoseconds now);

  bool over() const { return over_; }

 private:
  bool go_on();  // false: it is over
  bool hear();
  bool progressed();
  std::size_t untaken() const;
  void finish();

  Fabric& fabric_;
  os::UniqueFd socket_;
  Transmitter rest_;
  bool said_ = false;
  bool watched_ = false;
  bool over_ = false;
  std::size_t untaken_ = 0;  // when it was last looked at
  std::size_t unheard_;      // that may still come
  Patience patience_;
  Timer timer_;
};

}  // namespace anydat::nic::soft::iwarp
