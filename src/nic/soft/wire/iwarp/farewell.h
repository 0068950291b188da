// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/unique_fd.h"
#include "nic/engine.h"
#include "nic/soft/strangers.h"
#include "nic/soft/wire/iwarp/transmitter.h"

namespace anydat::nic::soft::iwarp {

class Fabric;

// A socket whose connection is over, until the peer has what was sent last. Were it closed with bytes of the peer
// unread, TCP would throw away what the peer has not yet read.
class Farewell final : public FdHandler, public Stranger {
 public:
  Farewell(Fabric& fabric, base::UniqueFd socket, Transmitter rest, Stage stage, const Address& source);
  ~Farewell() override;
  void begin();
  void hurry();  // waits for its end, for a moment
  void ready(std::uint32_t events) override;
  void turn_out() override;

 private:
  bool go_on();  // false: it is over

  Fabric& fabric_;
  base::UniqueFd socket_;
  Transmitter rest_;
  bool said_ = false;
  bool watched_ = false;
  Timer patience_;
};

}  // namespace anydat::nic::soft::iwarp
