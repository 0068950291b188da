// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dapl/agent_thread.h"
#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/ia_counters.h"
#include "dapl/ia_description.h"
#include "dapl/object.h"
#include "dapl/reset_counts.h"
#include "nic/adapter.h"
#include "os/lock.h"

namespace anydat::dapl {

class Evd;
class Lmr;
class Srq;

// An opened adapter and everything made through it.
//
// Thread safety: the adapter's engine is the lock of all object lists; limits, name and NIC are fixed after open().
// Freed objects stay in memory for a while (resting_): a thread that is wrongly still inside a call on one (THR-5)
// finds it dead instead of finding other data.
class Ia final : public Object, public nic::AdapterEvents {
 public:
  static constexpr HandleType kType = HandleType::ia;

  static Error open(const AdapterKind& kind, const char* name, Count async_min_qlen, Handle* async_evd, Handle* handle);
  static Error close(Ia& ia, CloseFlags flags);
  ~Ia() override;

  // The asynchronous EVD, or kEvdOutOfScope.
  Handle async_evd() const;

  nic::Adapter& nic() const { return *nic_; }
  nic::Engine& engine() const { return *engine_; }
  const Description& description() const { return description_; }
  const Limits& limits() const { return description_.limits(); }
  const std::string& name() const { return description_.name(); }
  const Habits& habits() const { return kind().habits; }

  // Takes the object in and gives it a handle. Null when the limit of its type or memory is exhausted.
  template <typename T>
  T* adopt(std::unique_ptr<T> object) {
    return static_cast<T*>(adopt_object(std::move(object)));
  }
  // The handle dies, the object's shut_down() or detach has been done or is done here, and the memory rests.
  void retire(Object& object);
  // The same of one that the program has never been told of, which counts as if it had not been made.
  void abandon(Object& object);
  Error out_of(const char* call, const char* what, Detail detail) const;

  // An async event about `object` to the async EVD, if there is one (IA-OPEN-18). From any thread, engine held or not.
  void post_async(const Object& object, EventKind kind, std::uint32_t reason);

  void on_failure() override;
  void on_fault() override;

  // Calls f(Evd&) for each EVD of the instance, and each that it has borrowed; with the lock of all instances, unless
  // the instance is closing.
  void for_each_evd(const std::function<void(Evd&)>& f);
  bool same_adapter(const Ia& other) const { return kind().adapter == other.kind().adapter; }
  // With the lock of all instances: EVDs of others that its endpoints have, or had and may hold completions of theirs.
  void note_borrowing() { borrows_.store(true); }
  void give_back(Evd& evd);  // with the engine; the endpoints go on without it
  void give_back_all();
  // (engine) A number for a CNO.
  std::uint64_t next_cno() { return ++last_cno_; }
  // (engine) An EVD goes for good: no trigger and no agent that is due names it any more, of whatever CNO.
  void forget_evd(Handle evd);
  const std::shared_ptr<AgentThread>& agents() const { return agents_; }
  nic::ZoneId next_zone() { return last_zone_ = last_zone_ % nic::kZoneMax + 1; }

  // The LMR with this context, or null.
  Lmr* find_lmr(std::uint32_t context) const {
    const auto found = lmrs_.find(context);
    return found != lmrs_.end() ? found->second : nullptr;
  }
  void note_lmr(std::uint32_t context, Lmr& lmr) { lmrs_[context] = &lmr; }
  void forget_lmr(std::uint32_t context) { lmrs_.erase(context); }

  // With the engine held: what it counts, and since when each of its objects does.
  IaCounters& counters() { return counters_; }
  ResetCounts& reset_counts() { return reset_counts_; }

 private:
  Ia(const AdapterKind& kind, std::string name, std::unique_ptr<nic::Adapter> nic);

  // Gives it its place among the open instances, and its async EVD, if that is one of this library's. False: what the
  // program has `named` has been freed since it was looked up, or its owner has closed.
  static bool join_instances(std::list<Ia*>& place, Evd* async_evd, Handle named, const Ia* owner);
  const AdapterKind& kind() const { return description_.kind(); }
  Object* adopt_object(std::unique_ptr<Object> object);
  Count limit_of(HandleType type) const;
  std::list<std::unique_ptr<Object>>& of(HandleType type) { return objects_[static_cast<std::size_t>(type)]; }
  void put_to_rest(Object& object);
  bool anything_of_the_consumers() const;
  void destroy_everything();
  void retire_all(HandleType type);

  const Description description_;
  std::unique_ptr<nic::Adapter> nic_;
  nic::Engine* engine_;
  const std::shared_ptr<AgentThread> agents_ = std::make_shared<AgentThread>();

  // With the engine held.
  std::array<std::list<std::unique_ptr<Object>>, kHandleTypes> objects_;
  std::list<std::unique_ptr<Object>> resting_;
  std::unordered_map<std::uint32_t, Lmr*> lmrs_;
  nic::ZoneId last_zone_ = nic::kNoZone;
  std::uint64_t last_cno_ = 0;
  bool closing_ = false;
  ResetCounts reset_counts_;

  IaCounters counters_;
  std::atomic<bool> borrows_{false};  // written with the lock of all instances

  // Written under the lock of all instances, since they share it, and under async_lock_, under which it is used: its
  // owner may close meanwhile.
  mutable os::SpinLock async_lock_;
  std::atomic<Evd*> async_evd_{nullptr};
  bool owns_async_evd_ = false;
  bool async_exists_elsewhere_ = false;
};

}  // namespace anydat::dapl
