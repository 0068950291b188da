// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/listener.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "nic/qualifier_ports.h"
#include "nic/refusal.h"
#include "nic/service_claim.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "nic/wanted.h"
#include "os/claimed_name.h"
#include "os/fork.h"
#include "os/lock.h"

namespace anydat::nic::verbs {

// Service points of this process that keep their ports but listen no more, by device and port: other instances cannot
// tell them from those that listen.
struct StoppedPoints {
  os::Mutex lock;
  std::set<VerbsListener::Point> all ANYDAT_GUARDED_BY(lock);
};

namespace {

constexpr int kBacklog = 1024;
constexpr int kTries = 100;  // to find a number that is free at all addresses
constexpr std::size_t kPartsMax = 1024;
os::PerProcess<StoppedPoints> stopped_points;

bool is_stopped(VerbsAdapter& adapter, ConnQual qual) {
  StoppedPoints& points = stopped_points.get();
  os::Guard guard(points.lock);
  return points.all.contains({adapter.device().name(), qual});
}

constexpr os::Nanoseconds kPartsAge = 60 * os::kNsPerSecond;

}  // namespace

// ---- parts of requests

bool Parts::add(const CmParsed& part) {
  const os::Nanoseconds now = os::now_ns();
  if (part.head.offset == 0) {
    std::erase_if(entries_, [&](const auto& entry) { return now - entry.second.since > kPartsAge; });
    if (entries_.size() >= kPartsMax) return false;
    entries_[part.head.number] = {now, {part.data.begin(), part.data.end()}};
    return true;
  }
  const auto found = entries_.find(part.head.number);
  if (found == entries_.end() || found->second.bytes.size() != part.head.offset) return false;
  found->second.bytes.insert(found->second.bytes.end(), part.data.begin(), part.data.end());
  return true;
}

bool Parts::take(const CmParsed& last, std::vector<std::byte>& whole) {
  whole.clear();
  if (last.head.offset > 0) {
    const auto found = entries_.find(last.head.number);
    if (found == entries_.end() || found->second.bytes.size() != last.head.offset) return false;
    whole = std::move(found->second.bytes);
    entries_.erase(found);
  }
  whole.insert(whole.end(), last.data.begin(), last.data.end());
  return true;
}

// ---- requests

VerbsRequest::VerbsRequest(VerbsAdapter& adapter, const CmEvent& event, CmIdPtr id, ConnQual qual)
    : adapter_(adapter),
      id_(std::move(id)),
      qual_(qual),
      local_(address_of(rdma_get_local_addr(event.id))),
      remote_(address_of(rdma_get_peer_addr(event.id))),
      remote_port_(port_of(rdma_get_peer_addr(event.id))),
      responder_resources_(event.responder_resources),
      initiator_depth_(event.initiator_depth) {
  id_->context = static_cast<CmHandler*>(this);
}

VerbsRequest::VerbsRequest(VerbsRequest& from, ConnQual qual)
    : adapter_(from.adapter_),
      id_(std::move(from.id_)),
      qual_(qual),
      local_(from.local_),
      remote_(from.remote_),
      remote_port_(from.remote_port_),
      data_(std::move(from.data_)),
      has_head_(from.has_head_),
      gone_(from.gone_),
      responder_resources_(from.responder_resources_),
      initiator_depth_(from.initiator_depth_) {
  if (id_) id_->context = static_cast<CmHandler*>(this);
}

VerbsRequest::~VerbsRequest() {
  answer(CmHead::Kind::refused);
}

bool VerbsRequest::assemble(const CmEvent& event) {
  const std::optional<CmParsed> ours = adapter_.device().is_iwarp() ? std::nullopt : parse(event.private_data());
  if (!ours) {
    auto data = event.private_data();
    Wanted wanted{Wanted::Kind::connection, 0, {}};
    const WantedParsed parsed = adapter_.device().is_iwarp() ? parse_wanted(data, wanted) : WantedParsed::nothing;
    const bool for_us =
        parsed == WantedParsed::nothing ? is_port(qual_) : parsed == WantedParsed::good && wanted.qual == qual_;
    if (!for_us || wanted.kind == Wanted::Kind::whose) {
      answer(for_us ? CmHead::Kind::here : CmHead::Kind::refused, for_us ? qual_ : 0);
      return false;
    }
    if (parsed == WantedParsed::good) data = wanted.private_data;
    data_.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(std::min(data.size(), kPrivateDataMax)));
    return true;
  }
  has_head_ = true;
  if (ours->head.kind == CmHead::Kind::whose) {
    answer(ours->head.number == qual_ ? CmHead::Kind::here : CmHead::Kind::refused, ours->head.number);
    return false;
  }
  if (is_port(qual_) ? ours->to != 0 : ours->to != qual_) {
    answer(CmHead::Kind::refused);
    return false;
  }
  if (ours->head.kind == CmHead::Kind::data && adapter_.parts().take(*ours, data_)) return true;
  const bool more = ours->head.kind == CmHead::Kind::part && adapter_.parts().add(*ours);
  answer(more ? CmHead::Kind::proceed : CmHead::Kind::refused);
  return false;
}

void VerbsRequest::answer(CmHead::Kind kind, std::uint64_t number, std::span<const std::byte> private_data) {
  if (!id_) return;
  if (!gone_) {
    CmHead head;
    head.kind = kind;
    head.number = number;
    const CmMessage message(head, private_data);
    if (adapter_.device().is_iwarp() && kind == CmHead::Kind::rejected) {
      const auto rejection = write_rejection(private_data);
      rdma_reject(id_.get(), rejection.data(), static_cast<std::uint8_t>(rejection.size()));
    } else if (adapter_.device().is_iwarp()) {
      using Why = Refusal::Why;
      const Why why = kind == CmHead::Kind::redirect ? Why::elsewhere
                      : kind == CmHead::Kind::here   ? Why::here
                                                     : Why::nobody_listens;
      const auto refusal = write_refusal({why, why == Why::nobody_listens ? 0 : number});
      rdma_reject(id_.get(), refusal.data(), static_cast<std::uint8_t>(refusal.size()));
    } else {
      rdma_reject(id_.get(), message.bytes.data(), static_cast<std::uint8_t>(message.length));
    }
  }
  id_.reset();
}

void VerbsRequest::on_cm_event(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      gone_ = true;
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      gone_ = true;
      id_.reset();  // for which the kernel waits
      break;
    default:
      break;
  }
}

void VerbsRequest::accept(QueuePair& queue_pair, std::span<const std::byte> private_data) {
  const bool gone = gone_ || !id_;
  Establishment::Offer offer{std::move(id_),       qual_,           local_, remote_, remote_port_, has_head_,
                             responder_resources_, initiator_depth_};
  auto& ours = static_cast<VerbsQueuePair&>(queue_pair);
  try {
    ours.connection().establishment().accept(offer, gone, private_data);
  } catch (const std::bad_alloc&) {
    id_ = std::move(offer.id);
    if (id_) id_->context = static_cast<CmHandler*>(this);
    throw;
  }
}

Status VerbsRequest::hand_off(ConnQual qual) {
  const auto found = adapter_.listeners().find(qual);
  if (found != adapter_.listeners().end() && !found->second->stopped()) {
    std::unique_ptr<ConnectionRequest> moved(new VerbsRequest(*this, qual));
    found->second->deliver(std::move(moved));
    return Status::ok;
  }
  // A peer over iWARP that is none of ours sees a rejection.
  if (!has_head_ && !adapter_.device().is_iwarp()) return Status::unreachable;
  // Another instance or process: the active side asks there itself, if the port is taken at our address.
  if (!is_port(qual)) {
    if (!os::is_claimed(rdma_claim(adapter_.device().name(), qual)) || is_stopped(adapter_, qual)) {
      return Status::unreachable;
    }
    answer(CmHead::Kind::redirect, qual);
    return Status::ok;
  }
  rdma_cm_id* probe = nullptr;
  if (create_id(adapter_.cm_channel(), &probe, nullptr) != 0) return Status::no_memory;
  const CmIdPtr owner(probe);
  sockaddr_storage address = socket_address(local_, qual);
  const bool taken = bind_id(probe, reinterpret_cast<sockaddr*>(&address)) != 0 && errno == EADDRINUSE;
  if (!taken) return Status::unreachable;
  if (is_stopped(adapter_, qual)) return Status::unreachable;
  answer(CmHead::Kind::redirect, qual);
  return Status::ok;
}

// ---- listeners

VerbsListener::~VerbsListener() {
  if (stopped_) {
    StoppedPoints& points = stopped_points.get();
    os::Guard guard(points.lock);
    points.all.erase({adapter_.device().name(), qual_});
  }
  adapter_.listeners().erase(qual_);
}

Status VerbsListener::listen_at(const Address& at, ConnQual port) {
  rdma_cm_id* id = nullptr;
  if (create_id(adapter_.cm_channel(), &id, static_cast<CmHandler*>(this)) != 0) {
    return Status::no_memory;
  }
  CmIdPtr owner(id);
  sockaddr_storage address = socket_address(at, port);
  if (bind_id(id, reinterpret_cast<sockaddr*>(&address)) != 0 || rdma_listen(id, kBacklog) != 0) {
    if (errno == EADDRINUSE) return port == 0 ? Status::none_free : Status::in_use;
    return errno == EADDRNOTAVAIL ? Status::unreachable : Status::failed;
  }
  ids_.push_back(std::move(owner));
  return Status::ok;
}

// At the first address, and under the same number at the others. An address that has gone is passed over.
Status VerbsListener::listen_everywhere(ConnQual qual) {
  ids_.clear();
  for (const DeviceAddress& one : adapter_.addresses()) {
    const Status status = listen_at(one.address, ids_.empty() ? qual : ntohs(rdma_get_src_port(ids_.front().get())));
    if (status != Status::ok && status != Status::unreachable) return status;
  }
  if (ids_.empty()) return qual == 0 ? Status::none_free : Status::failed;
  qual_ = ntohs(rdma_get_src_port(ids_.front().get()));
  return Status::ok;
}

// At each address under the first of the qualifier's ports that is free there.
Status VerbsListener::listen_derived(ConnQual qual) {
  // Over iWARP the ports are those of TCP, which the network devices' own addresses have as well.
  std::vector<std::string> names{rdma_claim(adapter_.device().name(), qual)};
  if (adapter_.device().is_iwarp()) {
    for (const std::string& device : network_devices(adapter_.device().name()))
      names.push_back(tcp_claim(device, qual));
  }
  for (const std::string& name : names) {
    int error = 0;
    claims_.push_back(os::claim_name(name, error));
    if (!claims_.back()) return error == EADDRINUSE ? Status::in_use : Status::no_memory;
  }
  for (const DeviceAddress& one : adapter_.addresses()) {
    Status status = Status::in_use;
    for (const std::uint16_t port : derived_ports(qual)) {
      status = listen_at(one.address, port);
      if (status != Status::in_use) break;
    }
    if (status == Status::in_use) return Status::none_free;
    if (status != Status::ok && status != Status::unreachable) return status;
  }
  if (ids_.empty()) return Status::failed;
  qual_ = qual;
  return Status::ok;
}

Status VerbsListener::listen(ConnQual qual) {
  Status status = is_port(qual) ? listen_everywhere(qual) : listen_derived(qual);
  // A number that is free at the first address may be taken at another.
  for (int tries = 0; qual == 0 && status == Status::in_use && tries < kTries; ++tries)
    status = listen_everywhere(qual);
  if (status != Status::ok) {
    ids_.clear();
    claims_.clear();
    return status == Status::in_use && qual == 0 ? Status::none_free : status;
  }
  std::set<Point> one{{adapter_.device().name(), qual_}};
  stopped_point_ = one.extract(one.begin());
  static_cast<void>(stopped_points.get());  // is made by its first use
  adapter_.listeners()[qual_] = this;
  return Status::ok;
}

void VerbsListener::stop() {
  stopped_ = true;
  StoppedPoints& points = stopped_points.get();
  os::Guard guard(points.lock);
  points.all.insert(std::move(stopped_point_));
}

void VerbsListener::deliver(std::unique_ptr<ConnectionRequest> request) {
  if (!stopped_) (void)events_.on_request(request);
  // One that was not taken is refused by its end.
}

void VerbsListener::on_cm_event(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    std::erase_if(ids_, [&](const CmIdPtr& id) { return id.get() == event.id; });  // for which the kernel waits
    return;
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  CmIdPtr id(event.id);  // which goes, and so refuses, if there is no memory for the request
  auto request = std::make_unique<VerbsRequest>(adapter_, event, std::move(id), qual_);
  if (!stopped_ && request->assemble(event)) deliver(std::move(request));
}

}  // namespace anydat::nic::verbs
