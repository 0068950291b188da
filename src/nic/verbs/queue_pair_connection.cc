// SPDX-License-Identifier: BSD-3-Clause
// Setting connections up, from either side. With the engine held.
#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/big_endian.h"
#include "base/random.h"
#include "nic/refusal.h"
#include "nic/service_ports.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "nic/wanted.h"

namespace anydat::nic::verbs {

namespace {

constexpr int kResolveRouteMs = 5000;
// RFC 5044, section 7.1.2, lets the passive side of iWARP send nothing before the active side has sent something, which
// a program need not know. Soft-iWARP ends the connection if it finds a frame behind the reply when it reads that, a
// few milliseconds after it has come where the processors have other things to do. So the passive side is established
// when something has come, or after this time.
constexpr base::Nanoseconds kFirstWord = 50'000'000;
// InfiniBand's reason for a reject by a program (volume 1, 12.6.7.2).
constexpr int kByConsumer = 28;

std::uint64_t random_number() {
  std::uint64_t number = 0;
  base::fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace

bool resolve_route(VerbsAdapter& adapter, rdma_cm_id* id) {
  return adapter.device().name() == ibv_get_device_name(id->verbs->device) &&
         rdma_resolve_route(id, kResolveRouteMs) == 0;
}

// ---- active side

Status VerbsQueuePair::connect(const ConnectParameters& parameters) {
  const Address* const source = source_for(adapter_.addresses(), parameters.remote);
  if (!source) return Status::unreachable;
  names_.local = *source;
  names_.remote = parameters.remote;
  names_.remote_port = parameters.qual;
  service_ = parameters.qual;
  private_data_.assign(parameters.private_data.begin(), parameters.private_data.end());
  private_data_sent_ = 0;
  attempt_ = random_number();
  settled_.reset();
  if (const Status status = look_for_service(); status != Status::ok) return status;
  sends_.enter(State::connecting);
  if (parameters.deadline != base::kForever) adapter_.engine().set_timer(deadline_timer_, parameters.deadline);
  return Status::ok;
}

// A port that a qualifier stands for may be anybody's, and is asked first whose it is.
Status VerbsQueuePair::look_for_service() {
  if (is_port(service_)) {
    port_ = static_cast<std::uint16_t>(service_);
    return begin_attempt();
  }
  try {
    inquiry_ = std::make_unique<Inquiry>(adapter_, *this, service_, zone_);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  return inquiry_->begin(names_.local, names_.remote);
}

void VerbsQueuePair::inquired(std::uint16_t port, ConnectFailure why) {
  if (state() != State::connecting) return;
  port_ = port;
  if (port == 0) return end_now({Ending::Report::connect_failed, why});
  if (begin_attempt() != Status::ok) end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
}

std::size_t VerbsQueuePair::part_max() const {
  return is_port(service_) ? kPartMax : kPartMax - kQualBytes;
}

Status VerbsQueuePair::begin_attempt() {
  rdma_cm_id* id = nullptr;
  if (create_id(adapter_.cm_channel(), &id, static_cast<CmHandler*>(this)) != 0) {
    return Status::no_memory;
  }
  id_.reset(id);
  sockaddr_storage from_address = socket_address(names_.local, 0);
  resolve_until_ = base::now_ns() + kResolve;
  if (bind_id(id, reinterpret_cast<sockaddr*>(&from_address)) == 0 &&
      resolve_address(id, names_.local, names_.remote, port_)) {
    names_.local_port = ntohs(rdma_get_src_port(id));
    return Status::ok;
  }
  const Status why = errno == ENOMEM ? Status::no_memory : Status::unreachable;
  id_.reset();
  return why;
}

void VerbsQueuePair::send_request(rdma_cm_id* id) {
  if (!device_ && device_.make(id) != DeviceQueuePair::Made::ready) {
    return end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
  }
  rdma_conn_param parameters{};
  parameters.responder_resources = static_cast<std::uint8_t>(limits_.reads_in);
  parameters.initiator_depth = static_cast<std::uint8_t>(limits_.reads_out);
  parameters.retry_count = 7;
  parameters.rnr_retry_count = adapter_.rnr_retries();
  parameters.srq = receives_.shared() ? 1 : 0;
  parameters.qp_num = device_.number();
  if (adapter_.device().is_iwarp()) return dial_plain(id, parameters);
  if (!send_with_head(id, parameters)) return not_sent(errno);
  unanswered_ = true;
}

void VerbsQueuePair::not_sent(int error) {
  end_now({Ending::Report::connect_failed, failure_of(error)});
}

void VerbsQueuePair::on_dialled(rdma_cm_id* id, int error) {
  if (id_.get() != id) return;
  dial_.reset();
  if (error == 0 || state() != State::connecting) return;
  unanswered_ = false;  // and will not be
  not_sent(error);
}

void VerbsQueuePair::dial_plain(rdma_cm_id* id, const rdma_conn_param& parameters) {
  std::optional<WantedBytes> wanted;
  std::span<const std::byte> data = private_data_;
  if (!is_port(service_)) {
    data = wanted.emplace(write_wanted({Wanted::Kind::connection, service_, data}));
  }
  try {
    dial_ = adapter_.dial(id, parameters, data);
    unanswered_ = true;
  } catch (const std::bad_alloc&) {
    not_sent(ENOMEM);
  }
}

bool VerbsQueuePair::send_with_head(rdma_cm_id* id, rdma_conn_param& parameters) {
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
void VerbsQueuePair::rejected(const CmEvent& event) {
  if (adapter_.device().is_iwarp()) {
    const std::optional<Refusal> refusal = parse_refusal(event.private_data());
    if (refusal && refusal->why == Refusal::Why::elsewhere && refusal->qual != 0) return ask_again(refusal->qual);
    if (refusal) return end_now({Ending::Report::connect_failed, ConnectFailure::refused});
    return rejected_with(parse_rejection(event.private_data()));
  }
  const std::optional<CmParsed> ours = parse(event.private_data());
  if (!ours) {
    // A reject in the program's name but without a word of it is the kernel's, for a service point or a process that
    // has gone.
    const auto data = event.private_data();
    const bool silent = std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{}; });
    if (event.status == kByConsumer && !silent) return rejected_with({});
    return end_now({Ending::Report::connect_failed, ConnectFailure::refused});
  }
  if (ours->head.kind == CmHead::Kind::redirect) return ask_again(ours->head.number);
  if (ours->head.kind == CmHead::Kind::proceed && private_data_sent_ + part_max() < private_data_.size()) {
    private_data_sent_ += part_max();
    return attempt_again();
  }
  if (ours->head.kind == CmHead::Kind::rejected) return rejected_with(ours->data);
  end_now({Ending::Report::connect_failed, ConnectFailure::refused});
}

// By the program at the other side. Private data that find no memory are lost.
void VerbsQueuePair::rejected_with(std::span<const std::byte> private_data) {
  try {
    rejection_.assign(private_data.begin(), private_data.end());
  } catch (const std::bad_alloc&) {
    rejection_.clear();
  }
  end_now({Ending::Report::connect_failed, ConnectFailure::rejected_by_peer});
}

// CR-HO-3: nobody above notices; the deadline keeps running.
void VerbsQueuePair::ask_again(ConnQual qual) {
  service_ = qual;
  private_data_sent_ = 0;
  attempt_ = random_number();
  give_up_attempt();
  if (look_for_service() == Status::ok) return;
  end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
}

// Being rejected has ended the device's idea of the connection as well. One that has not been answered is given up.
void VerbsQueuePair::attempt_again() {
  give_up_attempt();
  if (begin_attempt() == Status::ok) return;
  end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
}

void VerbsQueuePair::give_up_attempt() {
  if (std::exchange(unanswered_, false) && adapter_.device().is_iwarp()) {
    abandon_attempt();
  } else {
    device_.discard();
  }
  receives_.attempt_is_over();
  release_id();
}

// InfiniBand: the other side has accepted, and waits for us.
void VerbsQueuePair::answered(const CmEvent& event) {
  if (!device_ || !device_.connect(id_.get(), settled_) || rdma_establish(id_.get()) != 0) {
    return end_now({Ending::Report::connect_failed, ConnectFailure::refused});
  }
  const std::optional<CmParsed> ours = parse(event.private_data());
  sends_.agree_on_reads(std::min<std::uint32_t>(limits_.reads_out, event.initiator_depth));
  // It may have been handed on from one service point to another.
  names_.reached = {ours && ours->head.number != 0 ? ours->head.number : service_, adapter_.info().name};
  established(ours ? ours->data : event.private_data().first(std::min(event.length, kPrivateDataMax)));
}

void VerbsQueuePair::established(std::span<const std::byte> private_data) {
  accept_is_done_ = false;
  adapter_.engine().cancel_timer(first_word_timer_);
  adapter_.engine().cancel_timer(deadline_timer_);
  sends_.enter(State::connected);
  events_.on_established(private_data);
  for (const ReceiveSide::Early& early : receives_.take_early()) {
    if (early.done) {
      completed_shared(early.wc, *early.done);
    } else {
      completed(early.wc, early.id);
    }
  }
  adapter_.completions().batch().flush();
}

// ---- passive side

void VerbsQueuePair::accept(Offer& offer, bool gone, std::span<const std::byte> private_data) {
  rdma_cm_id* const id = offer.id.get();
  names_.local = offer.local;
  names_.local_port = offer.qual;
  names_.remote = offer.remote;
  names_.remote_port = offer.remote_port;
  accept_is_done_ = false;
  DeviceQueuePair::Reads& reads = settled_.emplace();
  reads.in = static_cast<std::uint8_t>(std::min<std::uint32_t>(limits_.reads_in, offer.responder_resources));
  reads.out = static_cast<std::uint8_t>(std::min<std::uint32_t>(limits_.reads_out, offer.initiator_depth));
  sends_.agree_on_reads(reads.out);
  using Made = DeviceQueuePair::Made;
  const Made made = gone ? Made::connection_over : device_.make(id);
  if (made == Made::no_memory) throw std::bad_alloc();
  id_ = std::move(offer.id);
  if (id_) id_->context = static_cast<CmHandler*>(this);
  sends_.enter(State::accepting);
  const bool iwarp = adapter_.device().is_iwarp();
  if (made != Made::ready || (!iwarp && !device_.connect(id, settled_))) {
    return end_now({Ending::Report::accept_failed});  // CR-ACC-5
  }
  rdma_conn_param parameters{};
  parameters.responder_resources = reads.in;
  parameters.initiator_depth = reads.out;
  parameters.rnr_retry_count = adapter_.rnr_retries();
  parameters.srq = receives_.shared() ? 1 : 0;
  parameters.qp_num = device_.number();
  CmHead head;
  head.number = offer.qual;
  const CmMessage message(head, offer.has_head ? private_data : std::span<const std::byte>{});
  parameters.private_data = offer.has_head ? message.bytes.data() : static_cast<const void*>(private_data.data());
  parameters.private_data_len =
      static_cast<std::uint8_t>(offer.has_head ? message.length : std::min<std::size_t>(private_data.size(), 255));
  if (rdma_accept(id, &parameters) != 0) end_now({Ending::Report::accept_failed});
}

// ---- events

void VerbsQueuePair::on_cm_event(const CmEvent& event) try {
  if (id_.get() != event.id) return;
  const bool connecting = state() == State::connecting;
  const bool resolved = event.type == RDMA_CM_EVENT_ADDR_RESOLVED || event.type == RDMA_CM_EVENT_ROUTE_RESOLVED;
  if (!resolved) unanswered_ = false;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (!connecting) break;
      if (!resolve_route(adapter_, event.id)) {
        end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
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
      if (connecting && event.status == -ETIMEDOUT && base::now_ns() < resolve_until_ &&
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
      if (connecting || (state() == State::accepting && !accept_is_done_)) {
        comes_to_nothing(ConnectFailure::refused);
      } else {
        if (state() == State::accepting) established({});
        peer_closed();
      }
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

void VerbsQueuePair::established_by(const CmEvent& event) {
  if (state() == State::connecting) {
    names_.reached = {service_, adapter_.info().name};
    sends_.agree_on_reads(std::min<std::uint32_t>(limits_.reads_out, event.initiator_depth));
    established(event.private_data().first(std::min(event.length, kPrivateDataMax)));
  } else if (state() == State::accepting && adapter_.device().is_iwarp()) {
    accept_is_done_ = true;
    adapter_.engine().set_timer(first_word_timer_, base::now_ns() + kFirstWord);
  } else if (state() == State::accepting) {
    established({});
  }
}

// Every attempt and every accept has its end.
void VerbsQueuePair::comes_to_nothing(ConnectFailure why) {
  if (state() == State::connecting) {
    end_now({Ending::Report::connect_failed, why});
  } else if (state() == State::accepting) {
    end_now({Ending::Report::accept_failed});
  }
}

}  // namespace anydat::nic::verbs
