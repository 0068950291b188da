// SPDX-License-Identifier: BSD-3-Clause
// The active side's question whose a derived port is (nic/qualifier_ports.h).
#pragma once

#include <array>
#include <memory>

#include "nic/adapter.h"
#include "nic/engine.h"
#include "nic/qualifier_ports.h"
#include "nic/soft/wire/iwarp/format/mpa.h"
#include "nic/wanted.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::iwarp {

class Fabric;
class TcpStream;

// Asks at all ports of one qualifier at once. The first answer "here" ends it. A port is a stranger's if it answers
// anything else, says nothing for a second, or has not let the question in three seconds after another port has refused
// or let in; a stranger has learnt the qualifier and nothing more. The outcome goes to Negotiation::inquired(), never
// from within begin(). With the engine held.
class Inquiry {
 public:
  Inquiry(Fabric& fabric, TcpStream& stream, ConnQual qual);
  ~Inquiry() { stop(); }
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // `local`: where the questions come from, if any could be asked. unreachable: from here none can be; no_memory: some
  // cannot for the lack of memory, descriptors or free ports. Then there is no outcome.
  Status begin(const Address& remote, Address& local);
  // There is no outcome any more, and the stream forgets this.
  void abandon();
  // The program has closed the sockets: no port will answer.
  void descriptors_lost();

 private:
  // One port.
  struct Asked final : FdHandler {
    void ready(std::uint32_t events) override { inquiry->ready(*this, events); }
    Inquiry* inquiry = nullptr;
    os::UniqueFd socket;  // until the port is known to be a stranger's
    std::uint16_t port = 0;
    bool connected = false;
    std::array<std::byte, kStartUpBytesMax> heard;
    std::size_t count = 0;
  };

  void ready(Asked& asked, std::uint32_t events);
  void ask(Asked& asked);
  void hear(Asked& asked);
  void host_has_answered();
  void give_up(bool connected);
  bool any_left() const;
  void is_stranger(Asked& asked, ConnectFailure why);
  void close(Asked& asked);
  void stop();
  void report();

  Fabric& fabric_;
  TcpStream* stream_;  // null: the outcome is told, or not wanted
  const ConnQual qual_;
  std::array<Asked, kPortsOfQualifier> asked_;
  ConnectFailure why_ = ConnectFailure::unreachable;  // where all are strangers
  std::uint16_t found_ = 0;
  bool host_is_there_ = false;
  Timer silence_;     // of ports that have been asked
  Timer unanswered_;  // of ports that cannot be asked yet
  Timer report_;
};

}  // namespace anydat::nic::soft::iwarp
