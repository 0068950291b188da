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
#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/habits.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Evd;
class Lmr;
class Srq;

// What an adapter instance allows. The same numbers are reported by dat_ia_query and enforced.
struct Limits {
  Count max_eps = 1 << 17;
  Count max_dto_per_ep = 1 << 16;
  Count max_rdma_reads_per_ep = 128;
  Count max_rdma_reads = 1 << 20;
  Count max_evds = 1 << 16;
  Count max_evd_qlen = 1 << 20;
  Count max_iov = 64;
  Count max_lmrs = (1 << 20) - 1;
  std::uint64_t max_lmr_block_size = std::uint64_t{1} << 46;
  std::uint64_t max_virtual_address = (std::uint64_t{1} << 56) - 1;
  Count max_pzs = 1 << 16;
  std::uint64_t max_message_size = std::uint64_t{1} << 31;
  std::uint64_t max_rdma_size = std::uint64_t{1} << 31;
  Count max_rmrs = (1 << 20) - 1;
  Count max_srqs = 4096;
  Count max_ep_per_srq = 1 << 17;
  Count max_recv_per_srq = 1 << 20;
  Count max_cnos = 1 << 16;
  Count max_service_points = 1 << 16;
};

// An opened adapter and everything made through it.
//
// Thread safety: the adapter's engine is the lock of all object lists; limits, name and NIC are fixed after open().
// Freed objects stay in memory for a while (resting_): a thread that is wrongly still inside a call on one (THR-5)
// finds it dead instead of finding other data.
class Ia final : public Object, public nic::AdapterEvents {
 public:
  static constexpr HandleType kType = HandleType::ia;

  // Makes the NIC for an adapter's name; null with Status::unsupported if there is no such adapter.
  // Where there is more to say than the status, `why` is one sentence.
  using AdapterFactory = std::unique_ptr<nic::Adapter> (*)(const std::string& name, nic::Status& status,
                                                           std::string& why);
  // What the registration says that an instance is opened through. An adapter may be registered under a name of the
  // administrator's choice, so the instance's name (IA-ATTR-1) and the adapter's are two things.
  struct Kind {
    const void* table;  // what the handles point to (HND-9); lasts for the life of the process
    AdapterFactory make;
    std::string adapter;              // what `make` is given
    std::uint32_t api_minor_version;  // reported as dapl_version_minor (PRV-ATTR-5)
    bool thread_safe;                 // reported as is_thread_safe (PRV-ATTR-6)
    Habits habits;                    // what its program may take for granted
    bool extended;                    // its program can ask for, and be shown, what not every adapter carries
  };
  static Error open(const Kind& kind, const char* name, Count async_min_qlen, Handle* async_evd, Handle* handle);
  static Error close(Ia& ia, CloseFlags flags);
  ~Ia() override;

  // The asynchronous EVD, or kEvdOutOfScope.
  Handle async_evd() const;
  ProviderAttributes provider_attributes() const;

  nic::Adapter& nic() const { return *nic_; }
  nic::Engine& engine() const { return *engine_; }
  const Limits& limits() const { return limits_; }
  const std::string& name() const { return name_; }
  const nic::Address& address() const { return address_; }
  const Habits& habits() const { return kind_.habits; }
  // What the adapter can (nic::ability), of what its program can make use of.
  std::uint32_t abilities() const { return kind_.extended ? nic_->info().abilities : 0; }
  // Whether bytes of a region, or of a window, can be named by their offset (D2-LMR-2, D2-RMR-7).
  bool zero_based() const { return kind_.extended && nic_->info().zero_based; }
  // Whether a window can be the sink of a Read (D2-READRMR): where the library's own table says what a key opens, and
  // no device's, which tells local from remote keys.
  bool reads_into_windows() const { return zero_based(); }
  // Whether a window can be one endpoint's alone (D2-RMR-1).
  bool endpoint_windows() const { return kind_.extended && nic_->info().queue_pair_windows; }
  // What a region may be registered with (D2-LMR-7).
  Privileges privileges() const {
    return kAllPrivileges | ((abilities() & nic::ability::kAtomics) != 0 ? nic::access::kRemoteAtomic : 0);
  }

  // Takes the object in and gives it a handle. Null when the limit of its type or memory is exhausted.
  template <typename T>
  T* adopt(std::unique_ptr<T> object) {
    return static_cast<T*>(adopt_object(std::move(object)));
  }
  // The handle dies, the object's shut_down() or detach has been done or is done here, and the memory rests.
  void retire(Object& object);
  Error out_of(const char* call, const char* what, Detail detail) const;

  // An async event about `object` to the async EVD, if there is one (IA-OPEN-18). From any thread, engine held or not.
  void post_async(const Object& object, EventKind kind, std::uint32_t reason);

  void on_failure() override;
  void on_fault() override;

  // Calls f(Evd&) for each EVD of the instance, and each that it has borrowed; with the lock of all instances, unless
  // the instance is closing.
  void for_each_evd(const std::function<void(Evd&)>& f);
  bool same_adapter(const Ia& other) const { return kind_.adapter == other.kind_.adapter; }
  // With the lock of all instances: EVDs of others that its endpoints have, or had and may hold completions of theirs.
  void note_borrowing() { borrows_.store(true); }
  void give_back(Evd& evd);  // with the engine; the endpoints go on without it
  void give_back_all();
  // (engine) A number for a CNO.
  std::uint64_t next_cno() { return ++last_cno_; }
  const std::shared_ptr<AgentThread>& agents() const { return agents_; }
  nic::ZoneId next_zone() { return last_zone_ = last_zone_ % nic::kZoneMax + 1; }

  // The LMR with this context, or null.
  Lmr* find_lmr(std::uint32_t context) const {
    const auto found = lmrs_.find(context);
    return found != lmrs_.end() ? found->second : nullptr;
  }
  void note_lmr(std::uint32_t context, Lmr& lmr) { lmrs_[context] = &lmr; }
  void forget_lmr(std::uint32_t context) { lmrs_.erase(context); }

 private:
  Ia(const Kind& kind, std::string name, std::unique_ptr<nic::Adapter> nic);

  Object* adopt_object(std::unique_ptr<Object> object);
  Count limit_of(HandleType type) const;
  std::list<std::unique_ptr<Object>>& of(HandleType type) { return objects_[static_cast<std::size_t>(type)]; }
  bool anything_of_the_consumers() const;
  void destroy_everything();
  void retire_all(HandleType type);

  const Kind kind_;
  const std::string name_;
  const Limits limits_;
  nic::Address address_;
  std::unique_ptr<nic::Adapter> nic_;
  nic::Engine* engine_;
  const std::shared_ptr<AgentThread> agents_ = std::make_shared<AgentThread>();
  std::string receiver_not_ready_;  // the text of its attribute
  std::vector<NamedAttribute> provider_attributes_;

  // With the engine held.
  std::array<std::list<std::unique_ptr<Object>>, kHandleTypes> objects_;
  std::list<std::unique_ptr<Object>> resting_;
  std::unordered_map<std::uint32_t, Lmr*> lmrs_;
  nic::ZoneId last_zone_ = nic::kNoZone;
  std::uint64_t last_cno_ = 0;
  bool closing_ = false;
  std::atomic<bool> borrows_{false};  // written with the lock of all instances

  // Written under the lock of all instances, since they share it, and under async_lock_, under which it is used: its
  // owner may close meanwhile.
  mutable base::SpinLock async_lock_;
  std::atomic<Evd*> async_evd_{nullptr};
  bool owns_async_evd_ = false;
  bool async_exists_elsewhere_ = false;
};

}  // namespace anydat::dapl
