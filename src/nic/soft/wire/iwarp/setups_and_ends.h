// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "nic/soft/finishing.h"
#include "nic/soft/strangers.h"
#include "nic/soft/wire/iwarp/lingering_closes.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::iwarp {

class Caller;
class Fabric;
class Inquiry;
class TcpRequest;
class TcpStream;
class Transmitter;

// The sockets of an adapter that belong neither to a connection nor to a service point: callers that have not said yet
// what they want, inquiries for the port of a service point, lingering closes. An object that is over stays until no
// call of it is under way. With the engine held.
class SetUpsAndEnds {
 public:
  explicit SetUpsAndEnds(Fabric& fabric);
  ~SetUpsAndEnds();
  // The peers of lingering closes have a while to take what is in line for them.
  void shut_down();
  // The program has closed our descriptors. Inquiries have their outcome soon.
  void descriptors_lost();

  void called(os::UniqueFd socket, const Address& source, ConnQual qual);
  // Asks for the stream which port is that service point's; it is told by Negotiation::inquired(), unless it abandons
  // the inquiry before. May throw std::bad_alloc.
  struct Begun {
    Status status = Status::no_memory;
    Inquiry* inquiry = nullptr;  // if the status is ok
    Address local{};             // where the questions come from, if any could be asked
  };
  Begun inquire(TcpStream& stream, const Address& remote, ConnQual qual);
  // Sees to it that what is in line still goes out, and then closes the socket.
  void part(os::UniqueFd socket, Transmitter rest, Stranger::Stage stage, const Address& source);

  void finished(Caller& caller) { sweep_soon(callers_.finished(caller)); }
  void finished(Inquiry& inquiry) { sweep_soon(inquiries_.finished(inquiry)); }
  void finished(LingeringClose& lingering) { sweep_soon(lingering_closes_.finished(lingering)); }

 private:
  void sweep_soon(bool wanted);
  void sweep();

  Fabric& fabric_;
  Finishing<Caller> callers_;
  Finishing<Inquiry> inquiries_;
  LingeringCloses lingering_closes_;
  Timer sweep_timer_;
};

}  // namespace anydat::nic::soft::iwarp
