// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ia.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/env.h"
#include "base/fork.h"
#include "dapl/cno.h"
#include "dapl/counters.h"
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/ranges.h"
#include "dapl/rmr.h"
#include "dapl/service_point.h"
#include "dapl/srq.h"
#include "version.h"

namespace anydat::dapl {

namespace {

// What programs written for OpenFabrics' Providers look for by name. There is no InfiniBand here, so only what is true
// of every adapter: it reads by RDMA, and a message of that many bytes never has to be cut by the program.
constexpr DAT_NAMED_ATTR kOpenFabricsAttributes[] = {
    {"DAT_IB_RDMA_READ", "TRUE"},
    {"DAT_IB_TRANSPORT_MTU", "2048"},
    {"DAT_IB_CONNECTIVITY_MODE", "DIRECT"},
};

// Freed objects that stay in memory (see the class comment).
constexpr std::size_t kRestingMax = 64;

// Instances may share an async EVD (IA-OPEN-3), whose owner may close first (ruling A40): who uses which is one matter
// of the whole process.
struct Instances {
  base::Mutex lock;
  std::list<Ia*> list;
};
constinit base::PerProcess<Instances> all_instances;
std::list<Ia*>& instances() {
  return all_instances->list;
}

void copy_name(char (&to)[DAT_NAME_MAX_LENGTH], const std::string& from) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, from.data(), std::min(from.size(), sizeof to - 1));
}

Limits limits_of(const nic::AdapterLimits& nic) {
  Limits limits;
  const auto lower = []<typename T>(T& ours, std::uint64_t theirs) {
    if (static_cast<std::uint64_t>(ours) > theirs) ours = static_cast<T>(theirs);
  };
  lower(limits.max_eps, nic.queue_pairs);
  lower(limits.max_ep_per_srq, nic.queue_pairs);
  lower(limits.max_dto_per_ep, std::min(nic.send_depth, nic.recv_depth));
  lower(limits.max_rdma_read_per_ep, nic.reads);
  lower(limits.max_iov, nic.segments);
  lower(limits.max_lmrs, nic.regions);
  lower(limits.max_rmrs, nic.regions);
  lower(limits.max_lmr_block_size, nic.region_bytes);
  lower(limits.max_message_size, nic.message_bytes);
  lower(limits.max_rdma_size, nic.message_bytes);
  lower(limits.max_srqs, nic.receive_queues);
  lower(limits.max_recv_per_srq, nic.receive_queue_depth);
  return limits;
}

}  // namespace

Ia::Ia(const Kind& kind, std::string name, std::unique_ptr<nic::Adapter> nic)
    : Object(*this, kType),
      kind_(kind),
      name_(std::move(name)),
      limits_(limits_of(nic->info().limits)),
      address_(nic->info().address),
      nic_(std::move(nic)),
      engine_(&nic_->engine()) {
  const nic::AdapterInfo& info = nic_->info();
  receiver_not_ready_ = info.receiver_not_ready_ns == base::kForever
                            ? "unlimited"
                            : fmt::format("{}", (info.receiver_not_ready_ns + 999'999) / 1'000'000);
  provider_attributes_ = {
      {"ANYDAT_RECEIVER_NOT_READY_MS", receiver_not_ready_.c_str()},
      {"ANYDAT_SEND_COMPLETES", info.sends_complete_at_receiver ? "received" : "sent"},
      {"ANYDAT_SOLICITED", info.tells_solicited ? "as sent" : "always"},
      {"ANYDAT_REMOTE_ERRORS", info.tells_remote_errors ? "told" : "not told"},
      {"ANYDAT_ACCEPT_COMPLETES", info.confirms_accepts ? "confirmed" : "at once"},
      {"ANYDAT_PEER_DEATH", info.tells_deaths ? "broken" : "disconnected or broken"},
  };
  if (kind_.habits.openfabrics_attributes) {
    provider_attributes_.insert(provider_attributes_.end(), std::begin(kOpenFabricsAttributes),
                                std::end(kOpenFabricsAttributes));
  }
}

Ia::~Ia() = default;

DAT_RETURN Ia::open(const Kind& kind, const char* name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd,
                    DAT_IA_HANDLE* handle) {
  base::warn_of_environment();
  const Limits limits;
  const DAT_EVD_HANDLE wanted = *async_evd;
  const bool creates = wanted == DAT_HANDLE_NULL;
  const bool elsewhere = wanted == DAT_EVD_ASYNC_EXISTS;
  if (creates && async_min_qlen <= 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_ia_open: async_evd_min_qlen {} is not positive",
                async_min_qlen);
  }
  if (creates && async_min_qlen > limits.max_evd_qlen) {
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD,
                "dat_ia_open: async_evd_min_qlen {} exceeds max_evd_qlen {}", async_min_qlen, limits.max_evd_qlen);
  }
  Evd* shared = nullptr;
  const Ia* owner = nullptr;
  const auto not_live = [&] {
    return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC,
                "dat_ia_open: {} is no live async EVD of an instance of {}", wanted, name);
  };
  if (!creates && !elsewhere) {
    shared = lookup<Evd>(wanted);
    if (!shared || !shared->carries(DAT_EVD_ASYNC_FLAG) || shared->ia().name() != name) return not_live();
    owner = &shared->ia();
  }
  nic::Status status = nic::Status::ok;
  std::string why;
  std::unique_ptr<nic::Adapter> nic = kind.make(kind.adapter, status, why);
  if (!nic) {
    if (!why.empty()) {
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE, "dat_ia_open: {}: {}", name, why);
    }
    if (status == nic::Status::unsupported) {
      return fail(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED, "dat_ia_open: {}: this host has no adapter {}", name,
                  kind.adapter);
    }
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE, "dat_ia_open: no memory, thread or descriptors for {}",
                name);
  }
  std::unique_ptr<Ia> ia(new Ia(kind, name, std::move(nic)));
  std::list<Ia*> place{ia.get()};
  std::unique_ptr<Evd> made = creates ? std::make_unique<Evd>(*ia, DAT_EVD_ASYNC_FLAG) : nullptr;
  // From here on nothing throws.
  ia->slot_ = HandleTable::instance().add(kind.table, kType, *ia);
  if (!ia->slot_) {
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_ia_open: no handle is free");
  }
  Evd* evd = shared;
  if (creates) {
    base::Guard guard(ia->engine());
    evd = made->init(async_min_qlen) ? ia->adopt(std::move(made)) : nullptr;
    if (!evd) {
      HandleTable::instance().remove(ia->slot_);
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_ia_open: no memory for the async EVD");
    }
  }
  {
    base::Guard guard(all_instances->lock);
    // Its owner may have closed since we looked.
    if (owner && std::find(instances().begin(), instances().end(), owner) == instances().end()) {
      HandleTable::instance().remove(ia->slot_);
      return not_live();
    }
    ia->async_evd_.store(evd);
    ia->owns_async_evd_ = creates;
    ia->async_exists_elsewhere_ = elsewhere;
    instances().splice(instances().end(), place);
    if (evd) {
      base::Guard engine(evd->ia().engine());
      StreamCounts counts = evd->streams();
      ++counts.others;
      evd->set_streams(counts);
    }
  }
  {
    base::Guard guard(ia->engine());
    ia->nic().report_to(ia.get());
  }
  if (creates) *async_evd = evd->handle();
  if (elsewhere) *async_evd = DAT_EVD_OUT_OF_SCOPE;  // IA-OPEN-17
  *handle = ia.release()->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Ia::close(Ia& ia, DAT_CLOSE_FLAGS flags) {
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_ia_close: flags {:#x} are neither abrupt nor graceful",
                static_cast<unsigned>(flags));
  }
  Evd* borrowed = nullptr;
  {
    base::Guard guard(all_instances->lock);
    Evd* own = ia.async_evd_.load();
    if (ia.owns_async_evd_) {
      const bool others = std::any_of(instances().begin(), instances().end(),
                                      [&](Ia* other) { return other != &ia && other->async_evd_.load() == own; });
      if (others && flags == DAT_CLOSE_GRACEFUL_FLAG) {
        return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
                    "dat_ia_close: another open instance shares this instance's async EVD");
      }
    }
    if (flags == DAT_CLOSE_GRACEFUL_FLAG) {
      base::Guard engine(ia.engine());
      if (ia.anything_of_the_consumers()) {
        return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
                    "dat_ia_close: objects of the instance still exist");
      }
    }
    std::erase(instances(), &ia);
    if (ia.owns_async_evd_) {
      for (Ia* other : instances()) {
        if (other->async_evd_.load() != own) continue;
        // Ruling A40. Whoever is just reporting something there has this lock.
        base::Guard reporting(other->async_lock_);
        other->async_evd_.store(nullptr);
      }
    } else {
      borrowed = own;
    }
    if (borrowed) {
      // Under the lock: its owner cannot go meanwhile.
      base::Guard engine(borrowed->ia().engine());
      StreamCounts counts = borrowed->streams();
      --counts.others;
      borrowed->set_streams(counts);
    }
    base::Guard reporting(ia.async_lock_);
    ia.async_evd_.store(nullptr);
  }
  HandleTable::instance().remove(ia.slot_);
  ia.destroy_everything();
  // An agent that is just calling may wait for the engine, and finds its objects dead but still there.
  ia.agents_->close();
  {
    base::Guard guard(ia.engine());
    ia.resting_.clear();
  }
  log_counters(ia);
  delete &ia;
  return DAT_SUCCESS;
}

bool Ia::anything_of_the_consumers() const {
  for (std::size_t type = 0; type < objects_.size(); ++type) {
    if (type == DAT_HANDLE_TYPE_CR) continue;  // ruling A39
    for (const auto& object : objects_[type]) {
      if (object.get() == async_evd_.load() && owns_async_evd_) continue;
      if (type == DAT_HANDLE_TYPE_EP &&
          static_cast<const Ep&>(*object).state() == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
        continue;
      }
      return true;
    }
  }
  return false;
}

// IA-CLOSE-3: dependents first.
void Ia::destroy_everything() {
  for (;; nic().await_quiet()) {
    base::Guard guard(engine());
    closing_ = true;
    for (const DAT_HANDLE_TYPE type : {DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CR}) retire_all(type);
    // The program may use the memory of its buffers for other things as soon as we return.
    bool quiet = true;
    for (auto& object : objects_[DAT_HANDLE_TYPE_EP]) quiet &= static_cast<Ep&>(*object).cut();
    if (!quiet) continue;
    for (const DAT_HANDLE_TYPE type :
         {DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_PZ,
          DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_CNO}) {
      retire_all(type);
    }
    nic().report_to(nullptr);
    return;
  }
}

void Ia::retire_all(DAT_HANDLE_TYPE type) {
  while (!objects_[type].empty()) retire(*objects_[type].front());
}

Object* Ia::adopt_object(std::unique_ptr<Object> object) {
  auto& list = objects_[object->type()];
  if (list.size() >= static_cast<std::size_t>(limit_of(object->type()))) return nullptr;
  std::list<std::unique_ptr<Object>> one;
  try {
    one.push_back(std::move(object));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  Object& adopted = *one.front();
  adopted.slot_ = HandleTable::instance().add(kind_.table, adopted.type(), adopted);
  if (!adopted.slot_) return nullptr;
  adopted.place_ = one.begin();
  list.splice(list.end(), one);
  return &adopted;
}

void Ia::retire(Object& object) {
  log_counters(object);
  HandleTable::instance().remove(object.slot_);
  switch (object.type()) {
    case DAT_HANDLE_TYPE_CR:
      static_cast<Cr&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_EP:
      static_cast<Ep&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_EVD:
      static_cast<Evd&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_LMR:
      static_cast<Lmr&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_PSP:
      static_cast<Psp&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_RSP:
      static_cast<Rsp&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_RMR:
      static_cast<Rmr&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_SRQ:
      static_cast<Srq&>(object).shut_down();
      break;
    case DAT_HANDLE_TYPE_CNO:
      static_cast<Cno&>(object).shut_down();
      break;
    default:
      break;
  }
  auto& list = objects_[object.type()];
  resting_.splice(resting_.end(), list, object.place_);
  if (resting_.size() <= kRestingMax || closing_) return;
  const auto oldest = std::find_if(resting_.begin(), resting_.end(), [](auto& resting) { return !resting->in_use(); });
  if (oldest != resting_.end()) resting_.erase(oldest);
}

DAT_COUNT Ia::limit_of(DAT_HANDLE_TYPE type) const {
  switch (type) {
    case DAT_HANDLE_TYPE_EP:
      return limits_.max_eps;
    case DAT_HANDLE_TYPE_EVD:
      return limits_.max_evds;
    case DAT_HANDLE_TYPE_LMR:
      return limits_.max_lmrs;
    case DAT_HANDLE_TYPE_RMR:
      return limits_.max_rmrs;
    case DAT_HANDLE_TYPE_PZ:
      return limits_.max_pzs;
    case DAT_HANDLE_TYPE_SRQ:
      return limits_.max_srqs;
    case DAT_HANDLE_TYPE_CNO:
      return limits_.max_cnos;
    case DAT_HANDLE_TYPE_PSP:
    case DAT_HANDLE_TYPE_RSP:
      return limits_.max_service_points;
    default:
      return 1 << 20;
  }
}

void Ia::for_each_evd(const std::function<void(Evd&)>& f) {
  for (auto& object : objects_[DAT_HANDLE_TYPE_EVD]) f(static_cast<Evd&>(*object));
}

DAT_RETURN Ia::out_of(const char* call, const char* what, DAT_RETURN subtype) const {
  return fail(DAT_INSUFFICIENT_RESOURCES, subtype, "{}: {} has no more {}", call, name_, what);
}

void Ia::post_async(const Object& object, DAT_EVENT_NUMBER number, DAT_COUNT reason) {
  // EVM-55. This is also how its own overflow, below, gets back here.
  if (number == DAT_ASYNC_ERROR_EVD_OVERFLOW && async_evd_.load() == &object) return;
  base::Guard guard(async_lock_);
  Evd* evd = async_evd_.load();
  if (!evd) return;
  DAT_EVENT event{};
  event.event_number = number;
  event.evd_handle = evd->handle();
  event.event_data.asynch_error_event_data.dat_handle = object.handle();
  event.event_data.asynch_error_event_data.reason = reason;
  evd->push(event);
}

// EVT-34, EVT-35.
void Ia::on_failure() {
  post_async(*this, DAT_ASYNC_ERROR_IA_CATASTROPHIC, DAT_IA_CATASTROPHIC_ERROR);
}

// The adapter lives, so it is not the event of a catastrophe.
void Ia::on_fault() {
  post_async(*this, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, DAT_IA_OTHER_ERROR);
}

DAT_RETURN Ia::query(DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK attr_mask, DAT_IA_ATTR* attr,
                     DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider) {
  if (attr_mask != 0) {
    if (const DAT_RETURN rc = check_query("dat_ia_query", attr_mask, DAT_IA_FIELD_ALL, attr, DAT_INVALID_ARG3))
      return rc;
  }
  if (provider_mask != 0) {
    if (const DAT_RETURN rc =
            check_query("dat_ia_query", provider_mask, DAT_PROVIDER_FIELD_ALL, provider, DAT_INVALID_ARG5))
      return rc;
  }
  if (async_evd) {
    base::Guard guard(async_lock_);
    const Evd* evd = async_evd_.load();
    *async_evd = evd ? evd->handle() : DAT_EVD_OUT_OF_SCOPE;
  }
  if (attr_mask != 0) fill(*attr);
  if (provider_mask != 0) {
    base::Guard guard(engine());
    fill(*provider);
  }
  return DAT_SUCCESS;
}

void Ia::fill(DAT_IA_ATTR& attr) {
  attr = {};
  copy_name(attr.adapter_name, name_);
  copy_name(attr.vendor_name, "anydat");
  attr.hardware_version_major = kVersionMajor;
  attr.hardware_version_minor = kVersionMinor;
  attr.firmware_version_major = kVersionMajor;
  attr.firmware_version_minor = kVersionMinor;
  attr.ia_address_ptr = &address_.generic;
  attr.max_eps = limits_.max_eps;
  attr.max_dto_per_ep = limits_.max_dto_per_ep;
  attr.max_rdma_read_per_ep_in = limits_.max_rdma_read_per_ep;
  attr.max_rdma_read_per_ep_out = limits_.max_rdma_read_per_ep;
  attr.max_evds = limits_.max_evds;
  attr.max_evd_qlen = limits_.max_evd_qlen;
  attr.max_iov_segments_per_dto = limits_.max_iov;
  attr.max_lmrs = limits_.max_lmrs;
  attr.max_lmr_block_size = limits_.max_lmr_block_size;
  attr.max_lmr_virtual_address = limits_.max_virtual_address;
  attr.max_pzs = limits_.max_pzs;
  attr.max_message_size = limits_.max_message_size;
  attr.max_rdma_size = limits_.max_rdma_size;
  attr.max_rmrs = limits_.max_rmrs;
  attr.max_rmr_target_address = limits_.max_virtual_address;
  attr.max_srqs = limits_.max_srqs;
  attr.max_ep_per_srq = limits_.max_ep_per_srq;
  attr.max_recv_per_srq = limits_.max_recv_per_srq;
  attr.max_iov_segments_per_rdma_read = limits_.max_iov;
  attr.max_iov_segments_per_rdma_write = limits_.max_iov;
  attr.max_rdma_read_in = limits_.max_rdma_reads;
  attr.max_rdma_read_out = limits_.max_rdma_reads;
  attr.max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
  attr.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
}

void Ia::fill(DAT_PROVIDER_ATTR& attr) {
  std::memset(static_cast<void*>(&attr), 0, sizeof attr);
  copy_name(attr.provider_name, "anydat");
  attr.provider_version_major = kVersionMajor;
  attr.provider_version_minor = kVersionMinor;
  attr.dapl_version_major = DAT_VERSION_MAJOR;
  attr.dapl_version_minor = kind_.api_minor_version;
  attr.lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
  attr.iov_ownership_on_return = DAT_IOV_CONSUMER;
  attr.dat_qos_supported = static_cast<DAT_QOS>(nic_->info().qos_supported);
  attr.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(0x1f);
  attr.is_thread_safe = kind_.thread_safe;
  attr.max_private_data_size = static_cast<DAT_COUNT>(nic_->info().private_data_max);
  attr.supports_multipath = DAT_FALSE;
  attr.ep_creator = DAT_PSP_CREATES_EP_IFASKED;
  attr.pz_support = DAT_PZ_UNIQUE;
  attr.optimal_buffer_alignment = 64;
  for (auto& row : attr.evd_stream_merging_supported) {
    std::fill(std::begin(row), std::end(row), DAT_TRUE);  // ruling A43
  }
  attr.srq_supported = DAT_TRUE;
  // Ruling A35 says what the digits mean.
  attr.srq_watermarks_supported = nic_->info().has_watermarks ? 0x111 : 0x001;
  attr.srq_ep_pz_difference_supported = nic_->info().shared_queue_of_any_zone ? DAT_TRUE : DAT_FALSE;
  attr.srq_info_supported = 0x11;
  attr.ep_recv_info_supported = nic_->info().counts_taken_buffers ? 0x11 : 0x00;
  attr.lmr_sync_req = DAT_FALSE;
  attr.dto_async_return_guaranteed = DAT_FALSE;
  attr.rdma_write_for_rdma_read_req = DAT_FALSE;
  attr.num_provider_specific_attr = static_cast<DAT_COUNT>(provider_attributes_.size());
  attr.provider_specific_attr = provider_attributes_.data();
}

}  // namespace anydat::dapl
