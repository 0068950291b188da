// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/inquiry.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "nic/refusal.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/establishment.h"
#include "nic/wanted.h"
#include "os/lack.h"

namespace anydat::nic::verbs {

namespace {

// A service point says at once that it is there, whatever its program does.
constexpr os::Nanoseconds kSilence = os::kNsPerSecond;
constexpr std::uint32_t kRoom = 2;  // one request and one receive, which are never posted

}  // namespace

Inquiry::Inquiry(VerbsAdapter& adapter, Establishment& establishment, ConnQual qual, ZoneId zone)
    : adapter_(adapter), establishment_(establishment), qual_(qual), zone_(zone), silence_([this] { give_up(); }) {
  const std::array<std::uint16_t, kPortsOfQualifier> ports = derived_ports(qual_);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    questions_[i].inquiry = this;
    questions_[i].port = ports[i];
  }
}

Status Inquiry::begin(const Address& local, const Address& remote) {
  local_ = local;
  remote_ = remote;
  resolve_until_ = os::now_ns() + kResolve;
  Status status = Status::unreachable;
  for (Question& question : questions_) {
    const Status one = begin(question);
    if (one == Status::no_memory) {
      stop();
      return one;
    }
    if (one == Status::ok) status = one;
  }
  return status;
}

Status Inquiry::begin(Question& question) {
  rdma_cm_id* id = nullptr;
  if (create_id(adapter_.cm_channel(), &id, static_cast<CmHandler*>(&question)) != 0) {
    return Status::no_memory;
  }
  question.id.reset(id);
  sockaddr_storage from = socket_address(local_, 0);
  if (bind_id(id, reinterpret_cast<sockaddr*>(&from)) == 0 && resolve(question)) return Status::ok;
  const Status why = os::is_lack(errno) ? Status::no_memory : Status::unreachable;
  question.id.reset();
  return why;
}

bool Inquiry::resolve(Question& question) {
  return resolve_address(question.id.get(), local_, remote_, question.port);
}

bool Inquiry::make_queue_pair(Question& question) {
  question.pd = adapter_.device().zone(zone_);
  question.cq = question.pd ? adapter_.completions().queues().reserve(kRoom) : nullptr;
  if (!question.cq) return false;
  ibv_qp_init_attr made{};
  made.qp_type = IBV_QPT_RC;
  made.send_cq = made.recv_cq = question.cq->get();
  made.cap.max_send_wr = made.cap.max_recv_wr = made.cap.max_send_sge = made.cap.max_recv_sge = 1;
  question.queue_pair.reset(ibv_create_qp(question.pd.get(), &made));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  int mask = 0;
  return question.queue_pair && rdma_init_qp_attr(question.id.get(), &attributes, &mask) == 0 &&
         ibv_modify_qp(question.queue_pair.get(), &attributes, mask) == 0;
}

void Inquiry::ask(Question& question) {
  if (!make_queue_pair(question)) return is_stranger(question, ConnectFailure::unreachable);
  rdma_conn_param parameters{};
  parameters.retry_count = 7;
  parameters.qp_num = question.queue_pair->qp_num;
  if (adapter_.device().is_iwarp()) {
    const auto wanted = write_wanted({Wanted::Kind::whose, qual_, {}});
    try {
      question.dial = adapter_.abandoned().dial(question.id.get(), parameters, wanted);
    } catch (const std::bad_alloc&) {
      return is_stranger(question, ConnectFailure::unreachable);
    }
  } else {
    CmHead head;
    head.kind = CmHead::Kind::whose;
    head.number = qual_;
    const CmMessage message(head, {});
    parameters.private_data = message.bytes.data();
    parameters.private_data_len = static_cast<std::uint8_t>(message.length);
    if (rdma_connect(question.id.get(), &parameters) != 0) return is_stranger(question, failure_of(errno));
  }
  question.unanswered = true;
  adapter_.engine().set_timer(silence_, os::now_ns() + kSilence);
}

void Inquiry::on_dialled(Question& question, int error) {
  question.dial.reset();
  if (error == 0) return;
  question.unanswered = false;  // and will not be
  is_stranger(question, failure_of(error));
}

void Inquiry::on_cm_event(Question& question, const CmEvent& event) {
  if (question.id.get() != event.id) return;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (resolve_route(adapter_, event.id)) break;
      return is_stranger(question, ConnectFailure::unreachable);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return ask(question);
    case RDMA_CM_EVENT_ADDR_ERROR:
      if (event.status == -ETIMEDOUT && os::now_ns() < resolve_until_ && resolve(question)) break;
      [[fallthrough]];
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return is_stranger(question, ConnectFailure::unreachable);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return adapter_.device_gone();
    case RDMA_CM_EVENT_REJECTED:
      question.unanswered = false;
      if (says_here(event)) return report(question.port);
      return is_stranger(question, ConnectFailure::refused);
    case RDMA_CM_EVENT_UNREACHABLE:
      question.unanswered = false;
      return is_stranger(question, failure_of(-event.status));
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_CONNECT_ERROR:  // the words of another protocol
    case RDMA_CM_EVENT_DISCONNECTED:
      question.unanswered = false;
      return is_stranger(question, ConnectFailure::refused);
    default:
      break;
  }
}

bool Inquiry::says_here(const CmEvent& event) const {
  if (adapter_.device().is_iwarp()) {
    const std::optional<Refusal> refusal = parse_refusal(event.private_data());
    return refusal && refusal->why == Refusal::Why::here && refusal->qual == qual_;
  }
  const std::optional<CmParsed> ours = parse(event.private_data());
  return ours && ours->head.kind == CmHead::Kind::here && ours->head.number == qual_;
}

// One port that refuses, or answers anything, shows that the host is there.
void Inquiry::is_stranger(Question& question, ConnectFailure why) {
  close(question);
  if (why == ConnectFailure::refused) why_ = why;
  if (std::ranges::none_of(questions_, [](const Question& one) { return static_cast<bool>(one.id); })) report(0);
}

// Over iWARP a port that has let the question in shows that the host is there; over InfiniBand nothing is known of it.
void Inquiry::give_up() {
  for (Question& question : questions_) {
    if (!question.unanswered || over_) continue;
    const bool let_in = adapter_.device().is_iwarp() && !question.dial;
    is_stranger(question, let_in ? ConnectFailure::refused : ConnectFailure::unreachable);
  }
}

void Inquiry::close(Question& question) {
  if (!question.id) return;
  if (question.queue_pair) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(question.queue_pair.get(), &attributes, IBV_QP_STATE);
  }
  AbandonedAttempt parts{};
  parts.id = std::move(question.id);
  parts.queue_pair = std::move(question.queue_pair);
  parts.pd = std::move(question.pd);
  parts.cq = std::exchange(question.cq, nullptr);
  parts.cq_room = kRoom;
  parts.dial = std::move(question.dial);
  // Over iWARP the kernel destroys what has not been answered when it is.
  if (parts.dial || (question.unanswered && adapter_.device().is_iwarp())) {
    adapter_.abandoned().keep(std::move(parts));
  } else {
    adapter_.abandoned().drop(parts);
  }
  question.unanswered = false;
}

void Inquiry::stop() {
  over_ = true;
  adapter_.engine().cancel_timer(silence_);
  for (Question& question : questions_) close(question);
}

void Inquiry::report(std::uint16_t port) {
  if (over_) return;
  stop();
  establishment_.inquired(port, why_);
}

}  // namespace anydat::nic::verbs
