// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: creation, configuration and queries.
#include "dapl/ep.h"

#include <algorithm>
#include <initializer_list>

#include "dapl/ep_attr.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/pz.h"
#include "dapl/ranges.h"
#include "dapl/srq.h"

namespace anydat::dapl {

namespace {

constexpr DAT_EP_PARAM_MASK kPartFields = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                          DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE;
constexpr DAT_EP_PARAM_MASK kFixedFields = DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE |
                                           DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
                                           DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL |
                                           DAT_EP_FIELD_SRQ_HANDLE | DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW;
constexpr DAT_EP_PARAM_MASK kNamedFields =
    DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR | DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR |
    DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR;

// How one endpoint's streams add to its EVDs. An EVD may have several of the parts.
void add_streams(StreamCounts& counts, const Evd* evd, const Ep::Parts& parts, const DAT_EP_ATTR& attr, int sign) {
  const auto add = [sign](std::uint32_t& count) { count += static_cast<std::uint32_t>(sign); };
  if (parts.recv == evd) add(counts.receives[recv_model(attr.recv_completion_flags)]);
  if (parts.request == evd) add(counts.requests[request_model(attr.request_completion_flags)]);
  if (parts.connect == evd) add(counts.others);
}

// Calls f(Evd&) once for each.
template <typename F>
void for_each_distinct(std::initializer_list<Evd*> evds, F&& f) {
  for (const auto* evd = evds.begin(); evd != evds.end(); ++evd) {
    if (*evd && std::find(evds.begin(), evd, *evd) == evd) f(**evd);
  }
}

// Copies the attributes that the mask names.
void merge(DAT_EP_ATTR& to, const DAT_EP_ATTR& from, DAT_EP_PARAM_MASK mask) {
  const auto copy = [&](DAT_EP_PARAM_MASK bit, auto DAT_EP_ATTR::*member) {
    if ((mask & bit) != 0) to.*member = from.*member;
  };
  copy(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &DAT_EP_ATTR::service_type);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &DAT_EP_ATTR::max_message_size);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &DAT_EP_ATTR::max_rdma_size);
  copy(DAT_EP_FIELD_EP_ATTR_QOS, &DAT_EP_ATTR::qos);
  copy(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &DAT_EP_ATTR::recv_completion_flags);
  copy(DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &DAT_EP_ATTR::request_completion_flags);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &DAT_EP_ATTR::max_recv_dtos);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &DAT_EP_ATTR::max_request_dtos);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &DAT_EP_ATTR::max_recv_iov);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &DAT_EP_ATTR::max_request_iov);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &DAT_EP_ATTR::max_rdma_read_in);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, &DAT_EP_ATTR::max_rdma_read_out);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, &DAT_EP_ATTR::max_rdma_read_iov);
  copy(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &DAT_EP_ATTR::max_rdma_write_iov);
  copy(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, &DAT_EP_ATTR::ep_transport_specific_count);
  copy(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, &DAT_EP_ATTR::ep_provider_specific_count);
}

// EP-WM-14
DAT_RETURN no_watermarks(const char* call, DAT_COUNT soft, DAT_COUNT hard) {
  return fail(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
              "{}: srq_watermarks_supported has no high watermarks, and soft {} and hard {} are not both infinite",
              call, soft, hard);
}

}  // namespace

Ep::Ep(Ia& ia, Srq* srq)
    : Object(ia, kType),
      srq_(srq),
      regions_(ia.nic().regions()),
      local_length_counts_(ia.habits().short_remote_segment) {}

Ep::~Ep() = default;

DAT_RETURN Ep::create(Ia& ia, const Parts& parts, Srq* srq, const DAT_EP_ATTR* given, DAT_EP_HANDLE* handle) {
  const char* call = srq ? "dat_ep_create_with_srq" : "dat_ep_create";
  if (!handle) {
    return fail(DAT_INVALID_PARAMETER, srq ? DAT_INVALID_ARG8 : DAT_INVALID_ARG7, "{}: ep_handle is NULL", call);
  }
  if (srq && !given) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7, "{}: ep_attributes is NULL", call);
  if (reinterpret_cast<std::uintptr_t>(given) % 4 != 0) {
    return fail(DAT_INVALID_PARAMETER, srq ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6, "{}: ep_attributes is not aligned",
                call);
  }
  DAT_EP_ATTR attr = given ? *given : default_attributes(ia.limits(), parts.recv != nullptr, parts.request != nullptr);
  if (attr.srq_soft_hw == 0) attr.srq_soft_hw = DAT_HW_DEFAULT;  // EP-CSRQ-17: unset
  attr.ep_transport_specific = nullptr;
  attr.ep_provider_specific = nullptr;
  base::Guard guard(ia.engine());
  auto made = std::make_unique<Ep>(ia, srq);
  if (const DAT_RETURN rc = made->check_parts(call, parts, attr)) return rc;
  const DAT_COUNT hard = ia.habits().srq_ep_without_watermark ? DAT_HW_DEFAULT : attr.max_recv_dtos;
  if (srq) {
    const nic::AdapterInfo& info = ia.nic().info();
    if (&srq->pz() != parts.pz && !info.shared_queue_of_any_zone) {  // EP-CSRQ-9
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                  "{}: the SRQ is of another protection zone, and srq_ep_pz_difference_supported is FALSE", call);
    }
    if ((attr.srq_soft_hw != DAT_HW_DEFAULT || hard != DAT_HW_DEFAULT) && !info.has_watermarks) {
      return no_watermarks(call, attr.srq_soft_hw, hard);
    }
  }
  if (srq && srq->endpoints() >= ia.limits().max_ep_per_srq)
    return ia.out_of(call, "endpoints of one SRQ", DAT_RESOURCE_TEP);

  Ep* ep = ia.adopt(std::move(made));
  if (!ep) return ia.out_of(call, "endpoints", DAT_RESOURCE_TEP);
  ep->owner = ep->handle();
  ep->queue_pair_ =
      ia.nic().create_queue_pair(queue_pair_limits(attr, srq != nullptr), srq ? &srq->queue() : nullptr, *ep);
  if (!ep->queue_pair_) {
    ia.retire(*ep);
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "{}: no memory for the endpoint", call);
  }
  if (srq) {
    srq->attach();
  } else {
    attr.srq_soft_hw = DAT_HW_DEFAULT;  // EP-CREATE-26
  }
  ep->take_parts(parts, attr);
  if (srq) ep->queue_pair_->set_watermarks(attr.srq_soft_hw, hard);
  *handle = ep->handle();
  return DAT_SUCCESS;
}

Ep* Ep::create_tentative(Ia& ia) {
  Ep* ep = ia.adopt(std::make_unique<Ep>(ia, nullptr));
  if (!ep) return nullptr;
  ep->owner = ep->handle();
  // Its EVDs come later; the queues are there for when they do.
  DAT_EP_ATTR attr = default_attributes(ia.limits(), true, true);
  ep->queue_pair_ = ia.nic().create_queue_pair(queue_pair_limits(attr, false), nullptr, *ep);
  if (!ep->queue_pair_) {
    ia.retire(*ep);
    return nullptr;
  }
  ep->take_parts({}, attr);
  ep->set_state(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  return ep;
}

// Everything that creation and modification demand of the configuration that would result.
DAT_RETURN Ep::check_parts(const char* call, const Parts& parts, const DAT_EP_ATTR& attr) const {
  const struct {
    Evd* evd;
    DAT_EVD_FLAGS flag;
    DAT_RETURN subtype;
    const char* what;
  } roles[] = {
      {parts.recv, DAT_EVD_DTO_FLAG, DAT_INVALID_HANDLE_EVD_RECV, "recv"},
      {parts.request, DAT_EVD_DTO_FLAG, DAT_INVALID_HANDLE_EVD_REQUEST, "request"},
      {parts.connect, DAT_EVD_CONNECTION_FLAG, DAT_INVALID_HANDLE_EVD_CONN, "connect"},
  };
  for (const auto& role : roles) {
    if (role.evd && !role.evd->carries(role.flag)) {
      return fail(DAT_INVALID_HANDLE, role.subtype, "{}: the {} EVD lacks flag {:#x}", call, role.what,
                  static_cast<unsigned>(role.flag));
    }
  }
  const AttributeContext context{call,
                                 ia().limits(),
                                 ia().nic().info().qos_supported,
                                 parts.recv != nullptr,
                                 parts.request != nullptr,
                                 srq_ != nullptr,
                                 ia().habits().srq_ep_without_watermark};
  if (const DAT_RETURN rc = check_attributes(context, attr)) return rc;

  bool permitted = true;
  for_each_distinct({parts.recv, parts.request, parts.connect}, [&](Evd& evd) {
    StreamCounts counts = evd.streams();
    if (parts_taken_) add_streams(counts, &evd, parts_, attr_, -1);
    add_streams(counts, &evd, parts, attr, +1);
    permitted &= evd.permits(counts);
  });
  if (permitted) return DAT_SUCCESS;
  return fail(DAT_INVALID_PARAMETER, srq_ ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6,
              "{}: completion flags (recv {:#x}, request {:#x}) do not go with the other streams of an EVD{}", call,
              static_cast<unsigned>(attr.recv_completion_flags), static_cast<unsigned>(attr.request_completion_flags),
              ia().habits().mixed_completion_flags.hint);
}

// Moves the use counts and streams from the old parts to the new ones.
void Ep::take_parts(const Parts& parts, const DAT_EP_ATTR& attr) {
  if (parts.pz) parts.pz->use();
  if (parts_.pz) parts_.pz->release();
  for_each_distinct({parts_.recv, parts_.request, parts_.connect, parts.recv, parts.request, parts.connect},
                    [&](Evd& evd) {
                      StreamCounts counts = evd.streams();
                      if (parts_taken_) add_streams(counts, &evd, parts_, attr_, -1);
                      add_streams(counts, &evd, parts, attr, +1);
                      evd.set_streams(counts);
                    });
  parts_ = parts;
  parts_taken_ = true;
  set_attributes(attr);
  zone_.store(parts.pz ? parts.pz->zone() : nic::kNoZone);
  queue_pair_->set_zone(zone_.load());
  queue_pair_->set_completion_queues(parts.recv, parts.request);
}

void Ep::set_attributes(const DAT_EP_ATTR& attr) {
  attr_ = attr;
  max_recv_iov_.store(attr.max_recv_iov);
  max_request_iov_.store(attr.max_request_iov);
  // DTO-5: 0 means the limit of the other requests.
  max_rdma_read_iov_.store(attr.max_rdma_read_iov > 0 ? attr.max_rdma_read_iov : attr.max_request_iov);
  max_rdma_write_iov_.store(attr.max_rdma_write_iov > 0 ? attr.max_rdma_write_iov : attr.max_request_iov);
  // DTO-8, R61: the established DAT test programs leave these 0 and send all the same; only the IA's limit holds then.
  max_message_size_.store(attr.max_message_size > 0 ? attr.max_message_size : ia().limits().max_message_size);
  max_rdma_size_.store(attr.max_rdma_size > 0 ? attr.max_rdma_size : ia().limits().max_rdma_size);
  recv_model_.store(recv_model(attr.recv_completion_flags));
  request_model_.store(request_model(attr.request_completion_flags));
}

DAT_RETURN Ep::query(DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_ep_query", mask, DAT_EP_FIELD_ALL, param)) return rc;
  const auto handle_of = [](const Object* object) { return object ? object->handle() : DAT_HANDLE_NULL; };
  param->ia_handle = ia().handle();
  param->ep_state = state();
  // EP-QUERY-5: the memory is the queue pair's, or ours.
  param->local_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(&queue_pair_->local_address().generic);
  param->local_port_qual = queue_pair_->local_port();
  param->remote_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(&queue_pair_->remote_address().generic);
  param->remote_port_qual = queue_pair_->remote_port();
  if (param->ep_state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
      param->ep_state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
    // EP-QUERY-3, EP-QUERY-4: the queue pair knows nothing of the request yet.
    param->local_ia_address_ptr = &offered_.local.generic;
    param->local_port_qual = offered_.local_port;
    param->remote_ia_address_ptr = &offered_.remote.generic;
    param->remote_port_qual = offered_.remote_port;
  }
  param->pz_handle = handle_of(parts_.pz);
  param->recv_evd_handle = handle_of(parts_.recv);
  param->request_evd_handle = handle_of(parts_.request);
  param->connect_evd_handle = handle_of(parts_.connect);
  param->srq_handle = handle_of(srq_);
  param->ep_attr = attr_;
  return DAT_SUCCESS;
}

void Ep::offer(const nic::ConnectionRequest& request, nic::ConnQual local_port) {
  offered_ = {request.local_address(), request.remote_address(), local_port, request.remote_port()};
}

DAT_RETURN Ep::modify(DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
  const char* call = "dat_ep_modify";
  if (const DAT_RETURN rc = check_query(call, mask, DAT_EP_FIELD_ALL, param)) return rc;
  if ((mask & kFixedFields) != 0 || (srq_ && (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS) != 0)) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                "dat_ep_modify: mask {:#x} names fields that cannot be changed", static_cast<std::uint64_t>(mask));
  }
  if (mask == 0) return DAT_SUCCESS;
  // EP-MODIFY-2
  const DAT_EP_STATE now = state();
  const bool idle = now == DAT_EP_STATE_UNCONNECTED;
  const bool tentative = now == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
  const bool reserved = now == DAT_EP_STATE_RESERVED || now == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
  if (!(idle || tentative || reserved) || ((mask & DAT_EP_FIELD_PZ_HANDLE) != 0 && reserved) ||
      ((mask & kNamedFields) != 0 && !idle)) {
    return wrong_state(call);
  }

  Parts parts = parts_;
  DAT_EP_ATTR attr = attr_;
  const auto replace = [&]<typename T>(DAT_EP_PARAM_MASK bit, DAT_HANDLE given, T*& part) {
    if ((mask & bit) == 0) return true;
    part = given ? lookup<T>(given) : nullptr;
    return given == DAT_HANDLE_NULL || (part && &part->ia() == &ia());
  };
  const struct {
    bool good;
    DAT_RETURN subtype;
    const char* what;
  } found[] = {
      {replace(DAT_EP_FIELD_PZ_HANDLE, param->pz_handle, parts.pz), DAT_INVALID_HANDLE_PZ, "pz_handle"},
      {replace(DAT_EP_FIELD_RECV_EVD_HANDLE, param->recv_evd_handle, parts.recv), DAT_INVALID_HANDLE_EVD_RECV,
       "recv_evd_handle"},
      {replace(DAT_EP_FIELD_REQUEST_EVD_HANDLE, param->request_evd_handle, parts.request),
       DAT_INVALID_HANDLE_EVD_REQUEST, "request_evd_handle"},
      {replace(DAT_EP_FIELD_CONNECT_EVD_HANDLE, param->connect_evd_handle, parts.connect), DAT_INVALID_HANDLE_EVD_CONN,
       "connect_evd_handle"},
  };
  for (const auto& entry : found) {
    if (!entry.good) {
      return fail(DAT_INVALID_HANDLE, entry.subtype, "dat_ep_modify: {} is no live object of this IA", entry.what);
    }
  }
  merge(attr, param->ep_attr, mask);
  if (tentative && (mask & kPartFields) != 0) {
    // A provider-made endpoint gets its parts one call after another; a direction without an EVD has no depth to
    // contradict it until the request is accepted.
    DAT_EP_ATTR checked = attr;
    if (!parts.recv) checked.max_recv_dtos = 0;
    if (!parts.request) checked.max_request_dtos = 0;
    if (const DAT_RETURN rc = check_parts(call, parts, checked)) return rc;
  } else if (const DAT_RETURN rc = check_parts(call, parts, attr)) {
    return rc;
  }

  const std::uint32_t posted = srq_ ? 0 : queue_pair_->recv_info().allocated;
  if (posted > 0) {  // EP-MODIFY-8
    if (recv_model(attr.recv_completion_flags) != recv_model(attr_.recv_completion_flags) ||
        attr.max_recv_dtos < static_cast<DAT_COUNT>(posted) ||
        attr.max_recv_iov < static_cast<DAT_COUNT>(queue_pair_->largest_posted_recv_segments())) {
      return fail(DAT_INVALID_STATE, subtype_of(now),
                  "dat_ep_modify: {} receives are posted, which the change does not fit", posted);
    }
  }
  if (queue_pair_->set_limits(queue_pair_limits(attr, srq_ != nullptr)) != nic::Status::ok) {
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_ep_modify: no memory for the new queue sizes");
  }
  take_parts(parts, attr);
  return DAT_SUCCESS;
}

DAT_RETURN Ep::set_watermark(DAT_COUNT soft, DAT_COUNT hard) {
  if (soft < DAT_WATERMARK_INFINITE || hard < DAT_WATERMARK_INFINITE) {
    return fail(DAT_INVALID_PARAMETER, soft < DAT_WATERMARK_INFINITE ? DAT_INVALID_ARG2 : DAT_INVALID_ARG3,
                "dat_ep_set_watermark: soft {} and hard {} must be 0 or more, or DAT_WATERMARK_INFINITE", soft, hard);
  }
  if ((soft != DAT_WATERMARK_INFINITE || hard != DAT_WATERMARK_INFINITE) && !ia().nic().info().has_watermarks) {
    return no_watermarks("dat_ep_set_watermark", soft, hard);
  }
  attr_.srq_soft_hw = soft;
  if (srq_) attr_.max_recv_dtos = hard;  // EP-WM-17
  queue_pair_->set_watermarks(soft, hard);
  return DAT_SUCCESS;
}

bool Ep::receives_solicited() const {
  return recv_model_.load(std::memory_order_relaxed) == StreamCounts::kSolicited;
}

const char* Ep::wire() const {
  base::Guard guard(ia().engine());
  return state() == DAT_EP_STATE_CONNECTED ? queue_pair_->wire() : nullptr;
}

DAT_RETURN Ep::get_status(DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) const {
  if (state) *state = this->state();
  if (recv_idle) *recv_idle = queue_pair_->recv_idle() ? DAT_TRUE : DAT_FALSE;
  if (request_idle) *request_idle = queue_pair_->send_idle() ? DAT_TRUE : DAT_FALSE;
  return DAT_SUCCESS;
}

DAT_RETURN Ep::recv_query(DAT_COUNT* allocated, DAT_COUNT* span) const {
  const nic::QueuePair::RecvInfo info = queue_pair_->recv_info();
  const auto to_dat = [](std::uint32_t count) {  // EP-RQ-13
    return count == nic::QueuePair::RecvInfo::kUnknown ? DAT_VALUE_UNKNOWN : static_cast<DAT_COUNT>(count);
  };
  if (allocated) *allocated = to_dat(info.allocated);
  if (span) *span = to_dat(info.span);
  return DAT_SUCCESS;
}

}  // namespace anydat::dapl
