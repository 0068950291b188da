// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/establishment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/big_endian.h"
#include "nic/qualifier_ports.h"
#include "nic/refusal.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "nic/wanted.h"
#include "os/lack.h"
#include "os/random.h"

namespace anydat::nic::verbs {

namespace {

constexpr int kResolveRouteMs = 5000;
// RFC 5044, section 7.1.2, lets the passive side of iWARP send nothing before the active side has sent something, which
// a program need not know. Soft-iWARP ends the connection if it finds a frame behind the reply when it reads that, a
// few milliseconds after it has come where the processors have other things to do. So the passive side is established
// when something has come, or after this time.
constexpr os::Nanoseconds kFirstWord = 50'000'000;
// InfiniBand's reason for a reject by a program (volume 1, 12.6.7.2).
constexpr int kByConsumer = 28;

}  // namespace

bool resolve_route(VerbsAdapter& adapter, rdma_cm_id* id) {
  return adapter.device().name() == ibv_get_device_name(id->verbs->device) &&
         rdma_resolve_route(id, kResolveRouteMs) == 0;
}

Establishment::Establishment(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, QueuePairEvents& events)
    : queue_pair_(queue_pair),
      adapter_(adapter),
      events_(events),
      deadline_timer_([this] {
        if (queue_pair_.state() == ConnectionState::connecting) failed(ConnectFailure::timed_out);
      }),
      first_word_timer_([this] {
        if (queue_pair_.state() == ConnectionState::accepting) done({});
      }) {}

// ---- active side

Status Establishment::connect(const ConnectParameters& parameters) {
  const Address* const source = source_for(adapter_.addresses(), parameters.remote);
  if (!source) return Status::unreachable;
  names_.local = *source;
  names_.remote = parameters.remote;
  names_.remote_port = parameters.qual;
  service_ = parameters.qual;
  private_data_.assign(parameters.private_data.begin(), parameters.private_data.end());
  private_data_sent_ = 0;
  attempt_ = os::random_number<std::uint64_t>();
  settled_.reset();
  if (const Status status = look_for_service(); status != Status::ok) return status;
  queue_pair_.sends().enter(ConnectionState::connecting);
  if (parameters.deadline != os::kForever) adapter_.engine().set_timer(deadline_timer_, parameters.deadline);
  return Status::ok;
}

// A port that a qualifier stands for may be anybody's, and is asked first whose it is.
Status Establishment::look_for_service() {
  if (is_port(service_)) {
    port_ = static_cast<std::uint16_t>(service_);
    return begin_attempt();
  }
  try {
    inquiry_ = std::make_unique<Inquiry>(adapter_, *this, service_, queue_pair_.zone());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  return inquiry_->begin(names_.local, names_.remote);
}

void Establishment::inquired(std::uint16_t port, ConnectFailure why) {
  if (queue_pair_.state() != ConnectionState::connecting) return;
  port_ = port;
  if (port == 0) return failed(why);
  if (begin_attempt() != Status::ok) failed(ConnectFailure::unreachable);
}

std::size_t Establishment::part_max() const {
  return is_port(service_) ? kPartMax : kPartMax - kQualBytes;
}

Status Establishment::begin_attempt() {
  rdma_cm_id* id = nullptr;
  if (create_id(adapter_.cm_channel(), &id, static_cast<CmHandler*>(this)) != 0) {
    return Status::no_memory;
  }
  id_.reset(id);
  sockaddr_storage from_address = socket_address(names_.local, 0);
  resolve_until_ = os::now_ns() + kResolve;
  if (bind_id(id, reinterpret_cast<sockaddr*>(&from_address)) == 0 &&
      resolve_address(id, names_.local, names_.remote, port_)) {
    names_.local_port = ntohs(rdma_get_src_port(id));
    return Status::ok;
  }
  const Status why = os::is_lack(errno) ? Status::no_memory : Status::unreachable;
  id_.reset();
  return why;
}

void Establishment::send_request(rdma_cm_id* id) {
  if (!queue_pair_.device() && queue_pair_.device().make(id) != DeviceQueuePair::Made::ready) {
    return failed(ConnectFailure::unreachable);
  }
  rdma_conn_param parameters{};
  parameters.responder_resources = static_cast<std::uint8_t>(queue_pair_.limits().reads_in);
  parameters.initiator_depth = static_cast<std::uint8_t>(queue_pair_.limits().reads_out);
  parameters.retry_count = 7;
  parameters.rnr_retry_count = adapter_.rnr_retries().count;
  parameters.srq = queue_pair_.receives().shared() ? 1 : 0;
  parameters.qp_num = queue_pair_.device().number();
  if (adapter_.device().is_iwarp()) return dial_plain(id, parameters);
  if (!send_with_head(id, parameters)) return failed(failure_of(errno));
  unanswered_ = true;
}

void Establishment::on_dialled(rdma_cm_id* id, int error) {
  if (id_.get() != id) return;
  dial_.reset();
  if (error == 0 || queue_pair_.state() != ConnectionState::connecting) return;
  unanswered_ = false;  // and will not be
  failed(failure_of(error));
}

void Establishment::dial_plain(rdma_cm_id* id, const rdma_conn_param& parameters) {
  std::optional<WantedBytes> wanted;
  std::span<const std::byte> data = private_data_;
  if (!is_port(service_)) {
    data = wanted.emplace(write_wanted({Wanted::Kind::connection, service_, data}));
  }
  try {
    dial_ = adapter_.abandoned().dial(id, parameters, data);
    unanswered_ = true;
  } catch (const std::bad_alloc&) {
    failed(failure_of(ENOMEM));
  }
}

bool Establishment::send_with_head(rdma_cm_id* id, rdma_conn_param& parameters) {
  const std::span<const std::byte> rest = std::span(private_data_).subspan(private_data_sent_);
  std::array<std::byte, kPartMax> body;
  std::size_t count = 0;
  CmHead head;
  const bool last = rest.size() <= part_max();
  head.kind = last ? CmHead::Kind::data : CmHead::Kind::part;
  head.offset = static_cast<std::uint16_t>(private_data_sent_);
  head.number = attempt_;
  if (!is_port(service_)) {
    head.kind = last ? CmHead::Kind::data_to : CmHead::Kind::part_to;
    base::store_big(body.data(), service_);
    count = kQualBytes;
  }
  const std::size_t part = std::min(rest.size(), part_max());
  std::copy_n(rest.begin(), part, body.begin() + static_cast<std::ptrdiff_t>(count));
  count += part;
  const CmMessage message(head, std::span(body).first(count));
  parameters.private_data = message.bytes.data();
  parameters.private_data_len = static_cast<std::uint8_t>(message.length);
  return rdma_connect(id, &parameters) == 0;
}

// The other side's reject, or a word of its NIC.
void Establishment::rejected(const CmEvent& event) {
  if (adapter_.device().is_iwarp()) {
    const std::optional<Refusal> refusal = parse_refusal(event.private_data());
    if (refusal && refusal->why == Refusal::Why::elsewhere && refusal->qual != 0) return ask_again(refusal->qual);
    if (refusal) return failed(ConnectFailure::refused);
    return rejected_with(parse_rejection(event.private_data()));
  }
  const std::optional<CmParsed> ours = parse(event.private_data());
  if (!ours) {
    // A reject in the program's name but without a word of it is the kernel's, for a service point or a process that
    // has gone.
    const auto data = event.private_data();
    const bool silent = std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{}; });
    if (event.status == kByConsumer && !silent) return rejected_with({});
    return failed(ConnectFailure::refused);
  }
  if (ours->head.kind == CmHead::Kind::redirect) return ask_again(ours->head.number);
  if (ours->head.kind == CmHead::Kind::proceed && private_data_sent_ + part_max() < private_data_.size()) {
    private_data_sent_ += part_max();
    return attempt_again();
  }
  if (ours->head.kind == CmHead::Kind::rejected) return rejected_with(ours->data);
  failed(ConnectFailure::refused);
}

// By the program at the other side. Private data that find no memory are lost.
void Establishment::rejected_with(std::span<const std::byte> private_data) {
  try {
    rejection_.assign(private_data.begin(), private_data.end());
  } catch (const std::bad_alloc&) {
    rejection_.clear();
  }
  failed(ConnectFailure::rejected_by_peer);
}

// CR-HO-3: the layers above do not notice; the deadline keeps running.
void Establishment::ask_again(ConnQual qual) {
  service_ = qual;
  private_data_sent_ = 0;
  attempt_ = os::random_number<std::uint64_t>();
  give_up_attempt();
  if (look_for_service() == Status::ok) return;
  failed(ConnectFailure::unreachable);
}

// Being rejected has ended the device's idea of the connection as well. One that has not been answered is given up.
void Establishment::attempt_again() {
  give_up_attempt();
  if (begin_attempt() == Status::ok) return;
  failed(ConnectFailure::unreachable);
}

void Establishment::give_up_attempt() {
  if (!abandon_unanswered()) queue_pair_.device().discard();
  queue_pair_.receives().attempt_is_over();
  release_id();
}

// InfiniBand: the other side has accepted, and waits for us.
void Establishment::answered(const CmEvent& event) {
  if (!queue_pair_.device() || !queue_pair_.device().connect(id_.get(), settled_) || rdma_establish(id_.get()) != 0) {
    return failed(ConnectFailure::refused);
  }
  const std::optional<CmParsed> ours = parse(event.private_data());
  queue_pair_.sends().agree_on_reads(std::min<std::uint32_t>(queue_pair_.limits().reads_out, event.initiator_depth));
  // It may have been handed on from one service point to another.
  names_.reached = {ours && ours->head.number != 0 ? ours->head.number : service_, adapter_.info().name};
  done(ours ? ours->data : event.private_data().first(std::min(event.length, kPrivateDataMax)));
}

// ---- passive side

void Establishment::accept(Offer& offer, bool gone, std::span<const std::byte> private_data) {
  rdma_cm_id* const id = offer.id.get();
  names_.local = offer.local;
  names_.local_port = offer.qual;
  names_.remote = offer.remote;
  names_.remote_port = offer.remote_port;
  accept_is_done_ = false;
  DeviceQueuePair::Reads& reads = settled_.emplace();
  reads.in =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(queue_pair_.limits().reads_in, offer.responder_resources));
  reads.out = static_cast<std::uint8_t>(std::min<std::uint32_t>(queue_pair_.limits().reads_out, offer.initiator_depth));
  queue_pair_.sends().agree_on_reads(reads.out);
  using Made = DeviceQueuePair::Made;
  const Made made = gone ? Made::connection_over : queue_pair_.device().make(id);
  if (made == Made::no_memory) throw std::bad_alloc();
  id_ = std::move(offer.id);
  if (id_) id_->context = static_cast<CmHandler*>(this);
  queue_pair_.sends().enter(ConnectionState::accepting);
  const bool iwarp = adapter_.device().is_iwarp();
  if (made != Made::ready || (!iwarp && !queue_pair_.device().connect(id, settled_))) {
    return queue_pair_.connection().end_now({Ending::Report::accept_failed});  // CR-ACC-5
  }
  rdma_conn_param parameters{};
  parameters.responder_resources = reads.in;
  parameters.initiator_depth = reads.out;
  parameters.rnr_retry_count = adapter_.rnr_retries().count;
  parameters.srq = queue_pair_.receives().shared() ? 1 : 0;
  parameters.qp_num = queue_pair_.device().number();
  CmHead head;
  head.number = offer.qual;
  const CmMessage message(head, offer.has_head ? private_data : std::span<const std::byte>{});
  parameters.private_data = offer.has_head ? message.bytes.data() : static_cast<const void*>(private_data.data());
  parameters.private_data_len =
      static_cast<std::uint8_t>(offer.has_head ? message.length : std::min<std::size_t>(private_data.size(), 255));
  if (rdma_accept(id, &parameters) != 0) queue_pair_.connection().end_now({Ending::Report::accept_failed});
}

// ---- either side

void Establishment::done(std::span<const std::byte> private_data) {
  accept_is_done_ = false;
  adapter_.engine().cancel_timer(first_word_timer_);
  adapter_.engine().cancel_timer(deadline_timer_);
  queue_pair_.sends().enter(ConnectionState::connected);
  events_.on_established(private_data);
  for (const ReceiveSide::Early& early : queue_pair_.receives().take_early()) {
    if (early.done) {
      queue_pair_.completed_shared(early.wc, *early.done);
    } else {
      queue_pair_.completed(early.wc, early.id);
    }
  }
  adapter_.completions().batch().flush();
}

void Establishment::stop() {
  if (inquiry_) inquiry_->stop();
  adapter_.engine().cancel_timer(first_word_timer_);
  adapter_.engine().cancel_timer(deadline_timer_);
}

// Over iWARP the kernel destroys what belongs to an attempt only when the other side has answered, for which it may
// wait for many seconds. So may not the adapter.
bool Establishment::abandon_unanswered() {
  if (!std::exchange(unanswered_, false) || !adapter_.device().is_iwarp()) return false;
  AbandonedAttempt attempt = queue_pair_.device().take_apart();
  attempt.id = std::move(id_);
  attempt.dial = std::exchange(dial_, nullptr);
  adapter_.abandoned().keep(std::move(attempt), true);
  return true;
}

void Establishment::release_id() {
  if (!dial_) return id_.reset();
  AbandonedAttempt attempt{};
  attempt.id = std::move(id_);
  attempt.dial = std::exchange(dial_, nullptr);
  attempt.unwanted = true;
  adapter_.abandoned().keep(std::move(attempt), true);
}

void Establishment::reset() {
  release_id();
  names_.reached = {};
}

void Establishment::failed(ConnectFailure why) {
  queue_pair_.connection().end_now({Ending::Report::connect_failed, why});
}

// ---- events

void Establishment::on_cm_event(const CmEvent& event) try {
  if (id_.get() != event.id) return;
  const bool connecting = queue_pair_.state() == ConnectionState::connecting;
  const bool resolved = event.type == RDMA_CM_EVENT_ADDR_RESOLVED || event.type == RDMA_CM_EVENT_ROUTE_RESOLVED;
  if (!resolved) unanswered_ = false;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (!connecting) break;
      if (!resolve_route(adapter_, event.id)) {
        failed(ConnectFailure::unreachable);
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (connecting) send_request(event.id);
      break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (connecting) answered(event);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      established_by(event);
      break;
    case RDMA_CM_EVENT_REJECTED:
      if (connecting) {
        rejected(event);
      } else {
        comes_to_nothing(ConnectFailure::refused);
      }
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
      if (connecting && event.status == -ETIMEDOUT && os::now_ns() < resolve_until_ &&
          resolve_address(event.id, names_.local, names_.remote, port_)) {
        break;
      }
      [[fallthrough]];
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      comes_to_nothing(failure_of(-event.status));
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      disconnected();
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      adapter_.device_gone();
      release_id();
      break;
    default:
      break;
  }
} catch (const std::bad_alloc&) {
  comes_to_nothing(ConnectFailure::refused);
}

void Establishment::established_by(const CmEvent& event) {
  if (queue_pair_.state() == ConnectionState::connecting) {
    names_.reached = {service_, adapter_.info().name};
    queue_pair_.sends().agree_on_reads(std::min<std::uint32_t>(queue_pair_.limits().reads_out, event.initiator_depth));
    done(event.private_data().first(std::min(event.length, kPrivateDataMax)));
  } else if (queue_pair_.state() == ConnectionState::accepting && adapter_.device().is_iwarp()) {
    accept_is_done_ = true;
    adapter_.engine().set_timer(first_word_timer_, os::now_ns() + kFirstWord);
  } else if (queue_pair_.state() == ConnectionState::accepting) {
    done({});
  }
}

void Establishment::disconnected() {
  const bool accepting = queue_pair_.state() == ConnectionState::accepting;
  if (queue_pair_.state() == ConnectionState::connecting || (accepting && !accept_is_done_)) {
    return comes_to_nothing(ConnectFailure::refused);
  }
  if (accepting) done({});
  queue_pair_.connection().peer_closed();
}

// Every attempt and every accept has its end.
void Establishment::comes_to_nothing(ConnectFailure why) {
  switch (step_for(Occurrence::peer_gone, queue_pair_.state())) {
    case Step::attempt_fails:
      failed(why);
      break;
    case Step::accept_fails:
      queue_pair_.connection().end_now({Ending::Report::accept_failed});
      break;
    default:
      break;
  }
}

}  // namespace anydat::nic::verbs
