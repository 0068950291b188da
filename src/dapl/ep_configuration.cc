// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_configuration.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "dapl/ep.h"
#include "dapl/ep_attr.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/instances.h"
#include "dapl/pz.h"
#include "dapl/srq.h"

namespace anydat::dapl {

namespace {

constexpr EpFields kFixedFields = ep_field::kUnchangeable | ep_field::kSrqSoftHw;
constexpr EpFields kNamedFields = ep_field::kTransportAttributeCount | ep_field::kTransportAttributes |
                                  ep_field::kProviderAttributeCount | ep_field::kProviderAttributes;

// How one endpoint's streams add to its EVDs. An EVD may have several of the parts.
void add_streams(StreamCounts& counts, const Evd* evd, const EpParts& parts, const EpAttributes& attr, int sign) {
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
void merge(EpAttributes& to, const EpAttributes& from, EpFields mask) {
  const auto copy = [&](EpFields bit, auto EpAttributes::*member) {
    if ((mask & bit) != 0) to.*member = from.*member;
  };
  copy(ep_field::kServiceType, &EpAttributes::service_type);
  copy(ep_field::kMaxMessageSize, &EpAttributes::max_message_size);
  copy(ep_field::kMaxRdmaSize, &EpAttributes::max_rdma_size);
  copy(ep_field::kQos, &EpAttributes::qos);
  copy(ep_field::kRecvCompletionFlags, &EpAttributes::recv_completion_flags);
  copy(ep_field::kRequestCompletionFlags, &EpAttributes::request_completion_flags);
  copy(ep_field::kMaxRecvDtos, &EpAttributes::max_recv_dtos);
  copy(ep_field::kMaxRequestDtos, &EpAttributes::max_request_dtos);
  copy(ep_field::kMaxRecvIov, &EpAttributes::max_recv_iov);
  copy(ep_field::kMaxRequestIov, &EpAttributes::max_request_iov);
  copy(ep_field::kMaxRdmaReadIn, &EpAttributes::max_rdma_read_in);
  copy(ep_field::kMaxRdmaReadOut, &EpAttributes::max_rdma_read_out);
  copy(ep_field::kMaxRdmaReadIov, &EpAttributes::max_rdma_read_iov);
  copy(ep_field::kMaxRdmaWriteIov, &EpAttributes::max_rdma_write_iov);
  copy(ep_field::kTransportAttributeCount, &EpAttributes::ep_transport_specific_count);
  copy(ep_field::kProviderAttributeCount, &EpAttributes::ep_provider_specific_count);
}

// For dat_ep_modify: the objects that `to` names take the places of those in `parts`.
Error find_parts(const Ia& ia, EpFields fields, const EpParameters& to, const EvdsOfCall& evds, EpParts& parts) {
  const auto replace = [&]<typename T>(EpFields bit, Handle given, T*& part) {
    if ((fields & bit) == 0) return true;
    part = given ? lookup<T>(given) : nullptr;
    if constexpr (std::is_same_v<T, Evd>) return given == nullptr || (part && evds.allows(*part));
    return given == nullptr || (part && &part->ia() == &ia);
  };
  const struct {
    bool good;
    Detail detail;
    const char* what;
    const Evd* evd;
  } found[] = {
      {replace(ep_field::kPz, to.pz_handle, parts.pz), Detail::handle_pz, "pz_handle", nullptr},
      {replace(ep_field::kRecvEvd, to.recv_evd_handle, parts.recv), Detail::handle_evd_recv, "recv_evd_handle",
       parts.recv},
      {replace(ep_field::kRequestEvd, to.request_evd_handle, parts.request), Detail::handle_evd_request,
       "request_evd_handle", parts.request},
      {replace(ep_field::kConnectEvd, to.connect_evd_handle, parts.connect), Detail::handle_evd_conn,
       "connect_evd_handle", parts.connect},
  };
  for (const auto& entry : found) {
    if (entry.good) continue;
    if (entry.evd) return evds.refuse(*entry.evd, "dat_ep_modify", entry.what, entry.detail);
    return fail(Code::invalid_handle, entry.detail, "dat_ep_modify: {} is no live object of this IA", entry.what);
  }
  return kSuccess;
}

// A provider-made endpoint gets its parts one call after another; a direction without an EVD has no depth to contradict
// it until the request is accepted, unless the call names that alone.
void leave_out_depths(EpFields fields, const EpParts& parts, const Limits& limits, EpAttributes& attr) {
  const auto leave_out = [&](EpFields field, Count& depth) {
    const bool possible = depth >= 0 && depth <= limits.max_dto_per_ep;
    if (possible && ((fields & ep_field::kParts) != 0 || (fields & field) == 0)) depth = 0;
  };
  if (!parts.recv) leave_out(ep_field::kMaxRecvDtos, attr.max_recv_dtos);
  if (!parts.request) leave_out(ep_field::kMaxRequestDtos, attr.max_request_dtos);
}

}  // namespace

// EP-CSRQ-9, EP-CSRQ-27
Error EpConfiguration::check_zone_of_srq(const char* call, Argument argument, const EpParts& parts) const {
  if (!ep_.srq() || &ep_.srq()->pz() == parts.pz || ep_.ia().nic().info().shared_queue_of_any_zone) return kSuccess;
  return fail(argument, "{}: the SRQ is of another protection zone, and srq_ep_pz_difference_supported is FALSE", call);
}

// EP-WM-14
Error EpConfiguration::check_watermarks(const char* call, Count soft, Count hard) const {
  if ((soft == kNoWatermark && hard == kNoWatermark) || ep_.ia().nic().info().has_watermarks) return kSuccess;
  return fail(Code::model_not_supported, Detail::none,
              "{}: srq_watermarks_supported has no high watermarks, and soft {} and hard {} are not both infinite",
              call, soft, hard);
}

// Everything that creation and modification demand of the configuration that would result.
Error EpConfiguration::check(const char* call, Argument argument, const EpParts& parts,
                             const EpAttributes& attr) const {
  const struct {
    Evd* evd;
    EvdFlags flag;
    Detail detail;
    const char* what;
  } roles[] = {
      {parts.recv, evd_flag::kDto, Detail::handle_evd_recv, "recv EVD"},
      {parts.request, evd_flag::kDto, Detail::handle_evd_request, "request EVD"},
      {parts.connect, evd_flag::kConnection, Detail::handle_evd_conn, "connect EVD"},
  };
  for (const auto& role : roles) {
    if (role.evd && !role.evd->alive()) return freed_meanwhile(call, role.what, role.detail);
    if (role.evd && !role.evd->carries(role.flag)) {
      return fail(Code::invalid_handle, role.detail, "{}: the {} lacks flag {:#x}", call, role.what, role.flag);
    }
  }
  const AttributeContext context{call,
                                 argument,
                                 ep_.ia().limits(),
                                 ep_.ia().nic().info().qos_supported,
                                 parts.recv != nullptr,
                                 parts.request != nullptr,
                                 ep_.srq() != nullptr,
                                 ep_.ia().habits().srq_ep_without_watermark};
  if (const Error error = check_attributes(context, attr)) return error;

  bool permitted = true;
  for_each_distinct({parts.recv, parts.request, parts.connect}, [&](Evd& evd) {
    StreamCounts counts = evd.streams();
    add_streams(counts, &evd, parts_, attr_, -1);
    add_streams(counts, &evd, parts, attr, +1);
    permitted &= evd.permits(counts);
  });
  if (permitted) return kSuccess;
  return fail(argument, "{}: completion flags (recv {:#x}, request {:#x}) do not go with the other streams of an EVD{}",
              call, attr.recv_completion_flags, attr.request_completion_flags,
              ep_.ia().habits().mixed_completion_flags.hint);
}

// Moves the use counts and streams from the old parts to the new ones.
void EpConfiguration::take(const EpParts& parts, const EpAttributes& attr) {
  if (parts.pz) parts.pz->use();
  if (parts_.pz) parts_.pz->release();
  for_each_distinct({parts_.recv, parts_.request, parts_.connect, parts.recv, parts.request, parts.connect},
                    [&](Evd& evd) {
                      evd.change_streams([&](StreamCounts& counts) {
                        add_streams(counts, &evd, parts_, attr_, -1);
                        add_streams(counts, &evd, parts, attr, +1);
                      });
                    });
  parts_ = parts;
  attr_ = attr;
  ep_.posts().set_attributes(attr);
  const nic::ZoneId zone = parts.pz ? parts.pz->zone() : nic::kNoZone;
  ep_.posts().set_zone(zone);
  ep_.queue_pair().set_zone(zone);
  ep_.queue_pair().set_completion_queues(parts.recv, parts.request);
}

void EpConfiguration::give_back(const Evd& evd) {
  if (parts_.recv != &evd && parts_.request != &evd && parts_.connect != &evd) return;
  EpParts parts = parts_;
  for (Evd** part : {&parts.recv, &parts.request, &parts.connect}) {
    if (*part == &evd) *part = nullptr;
  }
  take(parts, attr_);
}

Error EpConfiguration::modify(EpFields fields, const EpParameters& to, const EvdsOfCall& evds) {
  const char* call = "dat_ep_modify";
  if ((fields & kFixedFields) != 0 || (ep_.srq() && (fields & ep_field::kMaxRecvDtos) != 0)) {
    return fail(Argument::ep_param_mask, "dat_ep_modify: the mask names fields that cannot be changed");
  }
  if (fields == 0) return kSuccess;
  // EP-MODIFY-2
  const EpState now = ep_.state();
  if (!ep_.state_machine().allows(EpStep::modify_parts) ||
      ((fields & ep_field::kPz) != 0 && !ep_.state_machine().allows(EpStep::modify_zone)) ||
      ((fields & kNamedFields) != 0 && !ep_.state_machine().allows(EpStep::modify_named))) {
    return ep_.state_machine().wrong_state(call);
  }

  EpParts parts = parts_;
  if (const Error error = find_parts(ep_.ia(), fields, to, evds, parts)) return error;
  EpAttributes attr = attr_;
  merge(attr, to.ep_attr, fields);
  EpAttributes checked = attr;
  if (now == EpState::tentative_connection_pending) leave_out_depths(fields, parts, ep_.ia().limits(), checked);
  // Its watermarks are no attributes to be judged again: dat_ep_set_watermark may have set what creation does not take.
  if (ep_.srq()) checked.max_recv_dtos = checked.srq_soft_hw = kNoWatermark;
  if (const Error error = check(call, Argument::ep_param, parts, checked)) return error;
  if (const Error error = check_zone_of_srq(call, Argument::ep_param, parts)) return error;

  const auto does_not_fit = [&](std::uint32_t posted) {
    return fail(Code::invalid_state, detail_of(now),
                "dat_ep_modify: {} receives are posted, which the change does not fit", posted);
  };
  const std::uint32_t posted = ep_.srq() ? 0 : ep_.queue_pair().recv_info().allocated;
  if (posted > 0) {  // EP-MODIFY-8
    if (recv_model(attr.recv_completion_flags) != recv_model(attr_.recv_completion_flags) ||
        attr.max_recv_dtos < static_cast<Count>(posted) ||
        attr.max_recv_iov < static_cast<Count>(ep_.queue_pair().largest_posted_recv_segments())) {
      return does_not_fit(posted);
    }
  }
  const nic::Status status = ep_.queue_pair().set_limits(queue_pair_limits(attr, ep_.srq() != nullptr));
  if (status == nic::Status::queue_full)
    return does_not_fit(ep_.queue_pair().recv_info().allocated);  // since we looked
  if (status != nic::Status::ok) {
    return fail(Code::insufficient_resources, Detail::memory, "dat_ep_modify: no memory for the new queue sizes");
  }
  take(parts, attr);
  return kSuccess;
}

Error EpConfiguration::set_watermark(Count soft, Count hard) {
  if (soft < kNoWatermark || hard < kNoWatermark) {
    return fail(soft < kNoWatermark ? Argument::soft_high_watermark : Argument::hard_high_watermark,
                "dat_ep_set_watermark: soft {} and hard {} must be 0 or more, or DAT_WATERMARK_INFINITE", soft, hard);
  }
  if (const Error error = check_watermarks("dat_ep_set_watermark", soft, hard)) return error;
  attr_.srq_soft_hw = soft;
  if (ep_.srq()) attr_.max_recv_dtos = hard;  // EP-WM-17
  ep_.queue_pair().set_watermarks(soft, hard);
  return kSuccess;
}

}  // namespace anydat::dapl
