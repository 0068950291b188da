// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "face/dat.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/fork.h"
#include "os/lock.h"
#include "registry/builtin.h"
#include "registry/foreign.h"
#include "registry/library.h"
#include "registry/static_registry.h"
#include "registry/tuple.h"

namespace anydat::registry {

// Which Provider opens an IA name: the static registry (dat.conf), the dynamic one (what Providers have registered),
// and the built-in adapters, which stand in the dynamic registry without having been registered.
//
// Thread safety: any thread may call anything, also from inside a Provider that is being loaded, initialised or
// finalised. The lock is not held while foreign code runs; an entry that a thread works on is `busy` instead, and
// another that needs it waits for that.
// Always true: the uses of an entry are those of the registrations that came from its library, and a library is only
// unloaded when there are none and no thread is inside it.
class Registry {
  struct Entry;
  struct Registration;

 public:
  static Registry& instance();

  DAT_RETURN list(DAT_COUNT max, DAT_COUNT* count, DAT_PROVIDER_INFO* infos[]);
  DAT_RETURN add(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);
  DAT_RETURN remove(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);

  // What an IA is opened through: one use of a registration and of the library it came from (RES-11). Unless it is
  // handed to opened(), the use ends with it (RES-12).
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : registration_(std::exchange(other.registration_, nullptr)), tuple_(std::move(other.tuple_)) {}
    Use& operator=(Use&&) = delete;
    ~Use();

    const Tuple& tuple() const { return tuple_; }  // of the registration: its minor may be larger than the request's
    bool built_in() const { return registration_ == nullptr; }
    DAT_IA_OPEN_FUNC open_function() const;  // Requires, as for table(): not built in.
    const ForeignTable& table() const;

   private:
    friend class Registry;
    Registration* registration_ = nullptr;  // null for a built-in adapter
    Tuple tuple_{};
  };
  // Finds the registration for a request, loading a library if need be (RES-4 to RES-6).
  DAT_RETURN acquire(Tuple request, Use& use);

  // The instance is open; `ours` if its handle is one of this library's.
  void opened(Use&& use, DAT_IA_HANDLE ia, bool ours);
  // Before and after the Provider's close; the second gives the instance's use back. They are two, as a Provider may
  // give a handle that it has just freed to another thread: the number says which instance is meant. It is 0 for a
  // handle that was not opened through a registration.
  std::uint64_t begin_close(DAT_IA_HANDLE ia);
  void end_close(DAT_IA_HANDLE ia, std::uint64_t number);
  // Whether an IA can be opened by that name, or could if its Provider loads (nothing: there is no memory or descriptor
  // to tell by); and whether it is an adapter of this library that needs no entry.
  std::optional<bool> knows(const std::string& name);
  bool is_built_in(const std::string& name) const;
  // An open instance of that name that came through a registration, or null.
  DAT_IA_HANDLE open_instance(const std::string& name);
  // The table of an open instance of another Provider, or null (ruling A7).
  ForeignTable* foreign_instance(DAT_IA_HANDLE ia);

  // Finalises and unloads what is used no more (RES-13). To be called after every open, which may have loaded what it
  // then did not use, and after every close.
  void sweep();
  // To be called by a thread that has left a Provider's code: a library may have waited for it.
  void sweep_if_postponed() {
    if (postponed_.load()) sweep();
  }

 private:
  friend class os::PerProcess<Registry>;
  Registry();

  // An entry of the static registry and what has become of it.
  struct Entry {
    Entry(const StaticEntry& of, bool by_pattern) : constant(of), of_pattern(by_pattern), info(info_of(of.tuple)) {}
    const StaticEntry& constant;
    const bool of_pattern;                  // in named_, else in static_
    const DAT_PROVIDER_INFO info;           // what its Provider is given (REG-INIT-2, REG-FINI-1)
    std::unique_ptr<Library> library;       // null: not loaded
    const StaticLibrary* source = nullptr;  // which of constant.libraries it is
    std::string failure;                    // why it is not there, if that was tried
    bool busy = false;                      // `worker` is loading, initialising or finalising it, without the lock
    bool leaving = false;                   // it is being finalised: its registrations are not to be opened any more
    std::thread::id worker;
    std::uint32_t uses = 0;
    std::vector<ForeignTable*> tables;  // that lead into the library
  };
  class Work;

  struct Registration {
    Tuple tuple;
    const DAT_PROVIDER* provider;
    DAT_IA_OPEN_FUNC open;  // a copy (REG-ADD-2)
    ForeignTable* table;
    Entry* origin;  // null if no library of the static registry made it
    std::uint32_t uses = 0;
  };

  struct Instance {
    std::uint64_t number;
    Registration* registration;
    ForeignTable* table;  // null for an instance of ours
  };

  struct Builtins {
    std::vector<Tuple> tuples;
    UnseenDevices unseen;
  };
  Builtins builtins(bool listed) const;
  void add_tuples_of(const std::string& adapter, bool listed, std::vector<Tuple>& tuples) const;
  // Those that there are if there is an adapter of that name, which cannot be told; none if it can.
  std::vector<Tuple> unseen_tuples(const UnseenDevices& unseen, const std::string& name) const;
  Registration* find(const Tuple& tuple) ANYDAT_REQUIRES(lock_);
  Registration* best_registration(const Tuple& request) ANYDAT_REQUIRES(lock_);
  Entry* origin_of(const Tuple& tuple) ANYDAT_REQUIRES(lock_);
  std::vector<Tuple> known(std::vector<Tuple> builtin, const std::string& name) ANYDAT_REQUIRES(lock_);
  Entry* entry_for(const Tuple& request, bool built_in) ANYDAT_REQUIRES(lock_);
  // These let go of the lock while the Provider's code runs.
  void prepare(Entry& entry) ANYDAT_REQUIRES(lock_);
  void load(Entry& entry) ANYDAT_REQUIRES(lock_);
  void unload(Entry& entry, bool initialised) ANYDAT_REQUIRES(lock_);
  bool unused(const Entry& entry) ANYDAT_REQUIRES(lock_);
  void erase(Registration& registration) ANYDAT_REQUIRES(lock_);
  void end_use(Registration& registration) ANYDAT_REQUIRES(lock_);
  void end(const Instance& instance) ANYDAT_REQUIRES(lock_);

  static os::PerProcess<Registry> instance_;

  const StaticRegistry static_;
  os::Mutex lock_;
  std::condition_variable_any no_longer_busy_;
  std::list<StaticEntry> named_ ANYDAT_GUARDED_BY(lock_);  // what a pattern became for a name that it was opened by
  std::list<Entry> entries_ ANYDAT_GUARDED_BY(lock_);      // as in static_, then as in named_
  std::list<Registration> registrations_ ANYDAT_GUARDED_BY(lock_);
  std::unordered_map<DAT_IA_HANDLE, Instance> instances_ ANYDAT_GUARDED_BY(lock_);
  std::uint64_t last_instance_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::atomic<bool> postponed_{false};  // a library may be waiting for a thread to leave it
};

// REG-LIST-17: the library's destructor has run, so the process is about to end.
bool finalised();

}  // namespace anydat::registry
