// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock.h"
#include "dapl/agent_thread.h"
#include "dapl/habits.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Evd;
class Lmr;
class Srq;

// What an adapter instance allows. The same numbers are reported by dat_ia_query and enforced.
struct Limits {
  DAT_COUNT max_eps = 1 << 17;
  DAT_COUNT max_dto_per_ep = 1 << 16;
  DAT_COUNT max_rdma_read_per_ep = 128;
  DAT_COUNT max_rdma_reads = 1 << 20;
  DAT_COUNT max_evds = 1 << 16;
  DAT_COUNT max_evd_qlen = 1 << 20;
  DAT_COUNT max_iov = 64;
  DAT_COUNT max_lmrs = (1 << 20) - 1;
  DAT_VLEN max_lmr_block_size = DAT_VLEN{1} << 46;
  DAT_VADDR max_virtual_address = (DAT_VADDR{1} << 56) - 1;
  DAT_COUNT max_pzs = 1 << 16;
  DAT_VLEN max_message_size = DAT_VLEN{1} << 31;
  DAT_VLEN max_rdma_size = DAT_VLEN{1} << 31;
  DAT_COUNT max_rmrs = (1 << 20) - 1;
  DAT_COUNT max_srqs = 4096;
  DAT_COUNT max_ep_per_srq = 1 << 17;
  DAT_COUNT max_recv_per_srq = 1 << 20;
  DAT_COUNT max_cnos = 1 << 16;
  DAT_COUNT max_service_points = 1 << 16;
};

// An opened adapter and everything made through it.
//
// Thread safety: the adapter's engine is the lock of all object lists; limits, name and NIC are fixed after open().
// Freed objects stay in memory for a while (resting_): a thread that is wrongly still inside a call on one (THR-5)
// finds it dead instead of finding other data.
class Ia final : public Object, public nic::AdapterEvents {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_IA;

  // Makes the NIC for an adapter's name; null with Status::unsupported if there is no such adapter.
  // Where there is more to say than the status, `why` is one sentence.
  using AdapterFactory = std::unique_ptr<nic::Adapter> (*)(const std::string& name, nic::Status& status,
                                                           std::string& why);
  // What the registration says that an instance is opened through. An adapter may be registered under a name of the
  // administrator's choice, so the instance's name (IA-ATTR-1) and the adapter's are two things.
  struct Kind {
    const DAT_PROVIDER& table;  // what the handles point to (HND-9); lasts for the life of the process
    AdapterFactory make;
    std::string adapter;           // what `make` is given
    DAT_UINT32 api_minor_version;  // reported as dapl_version_minor (PRV-ATTR-5)
    DAT_BOOLEAN thread_safe;       // reported as is_thread_safe (PRV-ATTR-6)
    Habits habits;                 // what its program may take for granted
  };
  static DAT_RETURN open(const Kind& kind, const char* name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd,
                         DAT_IA_HANDLE* handle);
  static DAT_RETURN close(Ia& ia, DAT_CLOSE_FLAGS flags);
  ~Ia() override;

  DAT_RETURN query(DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK attr_mask, DAT_IA_ATTR* attr,
                   DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider);

  nic::Adapter& nic() const { return *nic_; }
  nic::Engine& engine() const { return *engine_; }
  const Limits& limits() const { return limits_; }
  const std::string& name() const { return name_; }
  const Habits& habits() const { return kind_.habits; }

  // Takes the object in and gives it a handle. Null when the limit of its type or memory is exhausted.
  template <typename T>
  T* adopt(std::unique_ptr<T> object) {
    return static_cast<T*>(adopt_object(std::move(object)));
  }
  // The handle dies, the object's shut_down() or detach has been done or is done here, and the memory rests.
  void retire(Object& object);
  DAT_RETURN out_of(const char* call, const char* what, DAT_RETURN subtype) const;

  // An async event about `object` to the async EVD, if there is one (IA-OPEN-18). From any thread, engine held or not.
  void post_async(const Object& object, DAT_EVENT_NUMBER number, DAT_COUNT reason);

  void on_failure() override;
  void on_fault() override;

  // Calls f(Evd&) for each EVD of the instance.
  void for_each_evd(const std::function<void(Evd&)>& f);
  // (engine) A number for a CNO.
  std::uint64_t next_cno() { return ++last_cno_; }
  const std::shared_ptr<AgentThread>& agents() const { return agents_; }
  nic::ZoneId next_zone() { return ++last_zone_; }

  // The LMR with this context, or null.
  Lmr* find_lmr(DAT_LMR_CONTEXT context) const {
    const auto found = lmrs_.find(context);
    return found != lmrs_.end() ? found->second : nullptr;
  }
  void note_lmr(DAT_LMR_CONTEXT context, Lmr& lmr) { lmrs_[context] = &lmr; }
  void forget_lmr(DAT_LMR_CONTEXT context) { lmrs_.erase(context); }

 private:
  Ia(const Kind& kind, std::string name, std::unique_ptr<nic::Adapter> nic);

  Object* adopt_object(std::unique_ptr<Object> object);
  DAT_COUNT limit_of(DAT_HANDLE_TYPE type) const;
  void fill(DAT_IA_ATTR& attr);
  void fill(DAT_PROVIDER_ATTR& attr);
  bool anything_of_the_consumers() const;
  void destroy_everything();
  void retire_all(DAT_HANDLE_TYPE type);

  const Kind kind_;
  const std::string name_;
  const Limits limits_;
  nic::Address address_;
  std::unique_ptr<nic::Adapter> nic_;
  nic::Engine* engine_;
  const std::shared_ptr<AgentThread> agents_ = std::make_shared<AgentThread>();
  std::string receiver_not_ready_;  // the text of its attribute
  std::vector<DAT_NAMED_ATTR> provider_attributes_;

  // With the engine held.
  std::array<std::list<std::unique_ptr<Object>>, DAT_HANDLE_TYPE_SRQ + 1> objects_;
  std::list<std::unique_ptr<Object>> resting_;
  std::unordered_map<DAT_LMR_CONTEXT, Lmr*> lmrs_;
  nic::ZoneId last_zone_ = nic::kNoZone;
  std::uint64_t last_cno_ = 0;
  bool closing_ = false;

  // Written under the lock of async EVDs in ia.cc, since instances share them, and under async_lock_, under which it is
  // used: its owner may close meanwhile.
  mutable base::SpinLock async_lock_;
  std::atomic<Evd*> async_evd_{nullptr};
  bool owns_async_evd_ = false;
  bool async_exists_elsewhere_ = false;
};

}  // namespace anydat::dapl
