// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: creation, queries, and their end.
#include "dapl/ep.h"

#include "dapl/ep_attr.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/pz.h"
#include "dapl/srq.h"

namespace anydat::dapl {

Ep::Ep(Ia& ia, Srq* srq)
    : Object(ia, kType), srq_(srq), connection_(*this), posts_(*this, srq != nullptr), configuration_(*this) {}

Ep::~Ep() = default;

Error Ep::create(Ia& ia, const EpParts& parts, Srq* srq, const EpAttributes* given, Handle* handle) {
  const char* call = srq ? "dat_ep_create_with_srq" : "dat_ep_create";
  if (!handle) return fail(Argument::ep_handle, "{}: ep_handle is NULL", call);
  if (srq && !given) return fail(Argument::ep_attributes, "{}: ep_attributes is NULL", call);
  EpAttributes attr = given ? *given : default_attributes(ia.limits(), parts.recv != nullptr, parts.request != nullptr);
  if (attr.srq_soft_hw == 0) attr.srq_soft_hw = kNoWatermark;  // EP-CSRQ-17: unset
  os::Guard guard(ia.engine());
  if (parts.pz && !parts.pz->alive()) return freed_meanwhile(call, "protection zone", Detail::handle_pz);
  if (srq && !srq->alive()) return freed_meanwhile(call, "SRQ", Detail::handle_srq);
  auto made = std::make_unique<Ep>(ia, srq);
  if (const Error error = made->configuration_.check(call, Argument::ep_attributes, parts, attr)) return error;
  const Count hard = ia.habits().srq_ep_without_watermark ? kNoWatermark : attr.max_recv_dtos;
  if (srq) {
    if (const Error error = made->configuration_.check_zone_of_srq(call, Argument::pz_handle, parts)) return error;
    if (const Error error = made->configuration_.check_watermarks(call, attr.srq_soft_hw, hard)) return error;
  }
  if (srq && srq->endpoints() >= ia.limits().max_ep_per_srq)
    return ia.out_of(call, "endpoints of one SRQ", Detail::endpoint);

  Ep* ep = ia.adopt(std::move(made));
  if (!ep) return ia.out_of(call, "endpoints", Detail::endpoint);
  if (!ep->open_queue_pair(attr)) {
    ia.abandon(*ep);
    return fail(Code::insufficient_resources, Detail::memory, "{}: no memory for the endpoint", call);
  }
  if (srq) {
    srq->attach();
  } else {
    attr.srq_soft_hw = kNoWatermark;  // EP-CREATE-26
  }
  ep->configuration_.take(parts, attr);
  if (srq) ep->queue_pair().set_watermarks(attr.srq_soft_hw, hard);
  *handle = ep->handle();
  return kSuccess;
}

Ep* Ep::create_tentative(Ia& ia) {
  Ep* ep = ia.adopt(std::make_unique<Ep>(ia, nullptr));
  if (!ep) return nullptr;
  // Its EVDs come later; the queues are there for when they do.
  EpAttributes attr = default_attributes(ia.limits(), true, true);
  if (!ep->open_queue_pair(attr)) {
    ia.abandon(*ep);
    return nullptr;
  }
  ep->configuration_.take({}, attr);
  ep->state_machine().apply(EpStep::make_tentative);
  return ep;
}

bool Ep::open_queue_pair(const EpAttributes& attr) {
  connection_.owner = handle();
  posts_.set_queue_pair(ia().nic().create_queue_pair(queue_pair_limits(attr, srq_ != nullptr),
                                                     srq_ ? &srq_->queue() : nullptr, connection_));
  if (!posts_.queue_pair()) return false;
  queue_pair().take_immediates((ia().description().abilities() & nic::ability::kImmediate) != 0);
  return true;
}

EpParameters Ep::query() const {
  const auto handle_of = [](const Object* object) { return object ? object->handle() : nullptr; };
  EpParameters answer;
  answer.ia_handle = ia().handle();
  answer.ep_state = state();
  connection_.name_ends(answer);
  const EpParts& parts = configuration_.parts();
  answer.pz_handle = handle_of(parts.pz);
  answer.recv_evd_handle = handle_of(parts.recv);
  answer.request_evd_handle = handle_of(parts.request);
  answer.connect_evd_handle = handle_of(parts.connect);
  answer.srq_handle = handle_of(srq_);
  answer.ep_attr = configuration_.attributes();
  answer.comm = connection_.comm();
  return answer;
}

std::optional<Error> Ep::free() {
  if (!state_machine().allows(EpStep::free)) return state_machine().wrong_state("dat_ep_free");
  if (!cut()) return std::nullopt;
  ia().retire(*this);
  return kSuccess;
}

void Ep::shut_down() {
  if (!posts_.queue_pair()) return;  // nor has it got its parts
  queue_pair().destroy();
  // Frees the PZ, the EVDs and the SRQ for others (EP-FREE-6).
  configuration_.release();
  if (srq_) srq_->detach();
}

// EP-STATUS-2, EP-STATUS-3. A completion frees its place before its event is queued, since a program that sees the
// event may post again at once (DTO-14). Between the two the engine is held, so who gets it finds the events there.
bool Ep::receives_idle() const {
  if (!queue_pair().recv_idle()) return false;
  os::Guard events_are_queued(ia().engine());
  return queue_pair().recv_idle();
}

bool Ep::requests_idle() const {
  if (!queue_pair().send_idle()) return false;
  os::Guard events_are_queued(ia().engine());
  return queue_pair().send_idle();
}

const char* Ep::wire() const {
  os::Guard guard(ia().engine());
  return state() == EpState::connected ? queue_pair().wire() : nullptr;
}

Ep::ReceiveCounts Ep::recv_query() const {
  const nic::QueuePair::RecvInfo info = queue_pair().recv_info();
  const auto known = [](std::uint32_t count) {  // EP-RQ-13
    return count == nic::QueuePair::RecvInfo::kUnknown ? kUnknownCount : static_cast<Count>(count);
  };
  return {known(info.allocated), known(info.span)};
}

}  // namespace anydat::dapl
