// SPDX-License-Identifier: BSD-3-Clause
// The active side's question whose a derived port is (nic/qualifier_ports.h).
#pragma once

#include <array>

#include "nic/adapter.h"
#include "nic/qualifier_ports.h"
#include "nic/verbs/cm.h"
#include "nic/verbs/kernel_calls.h"

namespace anydat::nic::verbs {

class Cq;
class VerbsAdapter;
class Establishment;

// Asks at all ports of one qualifier at once, each by an attempt to connect with a queue pair of its own. The first
// answer "here" ends it. A port is a stranger's if it answers anything else, or nothing for a second. The outcome goes
// to Establishment::inquired(), never from within begin(). With the engine held.
class Inquiry {
 public:
  Inquiry(VerbsAdapter& adapter, Establishment& establishment, ConnQual qual, ZoneId zone);
  ~Inquiry() { stop(); }
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // Where it does not answer with `ok`, there is no outcome.
  Status begin(const Address& local, const Address& remote);
  // There is no outcome any more.
  void stop();

 private:
  // At one port.
  struct Question final : CmHandler {
    void on_cm_event(const CmEvent& event) override { inquiry->on_cm_event(*this, event); }
    void on_dialled(rdma_cm_id*, int error) override { inquiry->on_dialled(*this, error); }
    Inquiry* inquiry = nullptr;
    std::uint16_t port = 0;
    CmIdPtr id;  // until the port is known to be a stranger's
    PdPtr pd;
    Cq* cq = nullptr;
    QpPtr queue_pair;
    KernelCalls::Ref dial;
    bool unanswered = false;  // it has been asked and has said nothing
  };

  Status begin(Question& question);
  bool resolve(Question& question);
  bool make_queue_pair(Question& question);
  void ask(Question& question);
  void on_cm_event(Question& question, const CmEvent& event);
  void on_dialled(Question& question, int error);
  bool says_here(const CmEvent& event) const;
  void is_stranger(Question& question, ConnectFailure why);
  void give_up();
  void close(Question& question);
  void report(std::uint16_t port);

  VerbsAdapter& adapter_;
  Establishment& establishment_;
  const ConnQual qual_;
  const ZoneId zone_;
  Address local_{};
  Address remote_{};
  os::Nanoseconds resolve_until_ = 0;
  bool over_ = false;                                 // nothing is to be told
  ConnectFailure why_ = ConnectFailure::unreachable;  // where all are strangers
  std::array<Question, kPortsOfQualifier> questions_;
  Timer silence_;
};

}  // namespace anydat::nic::verbs
