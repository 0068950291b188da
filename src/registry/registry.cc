// SPDX-License-Identifier: BSD-3-Clause
#include "registry/registry.h"

#include <algorithm>

#include "dapl/error.h"
#include "env/log.h"
#include "os/own_memory.h"
#include "registry/builtin.h"

namespace anydat::registry {

namespace {

// REG-ADD-8. More is a Provider that has run wild.
constexpr std::size_t kRegistrationsMax = 1024;
// Names that patterns have stood for. More is a program that makes them up.
constexpr std::size_t kNamedMax = 1024;

constexpr std::string_view kAwarePrefix = "RO_AWARE_";

std::atomic<bool> destructor_has_run{false};

[[gnu::destructor]] void finalise() {
  destructor_has_run.store(true);
}

// Lets go of a lock for a scope in which a Provider's code runs.
class ANYDAT_SCOPED_CAPABILITY Unlocked {
 public:
  explicit Unlocked(os::Mutex& lock) ANYDAT_RELEASE(lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() ANYDAT_RELEASE() ANYDAT_NO_ANALYSIS { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  os::Mutex& lock_;
};

bool contains(const std::vector<Tuple>& tuples, const Tuple& tuple) {
  return std::find(tuples.begin(), tuples.end(), tuple) != tuples.end();
}

bool has_name(const std::vector<Tuple>& tuples, std::string_view name) {
  return std::any_of(tuples.begin(), tuples.end(), [&](const Tuple& tuple) { return tuple.name == name; });
}

}  // namespace

bool finalised() {
  return destructor_has_run.load();
}

// While one lives, its thread may work on the entry without the lock. Requires the lock at both ends.
class Registry::Work {
 public:
  Work(Registry& registry, Entry& entry)
      : registry_(registry), entry_(entry), nested_(std::exchange(entry.busy, true)) {
    entry_.worker = std::this_thread::get_id();
  }
  ~Work() {
    if (nested_) return;
    entry_.busy = false;
    registry_.no_longer_busy_.notify_all();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  Registry& registry_;
  Entry& entry_;
  const bool nested_;  // in work of the same thread
};

// Made by the first call, which may come before this library's constructors have run (REG-ADD-10). The child of a fork
// reads the static registry again, and knows no Provider that has registered itself with its parent.
constinit os::PerProcess<Registry> Registry::instance_;

Registry& Registry::instance() {
  return *instance_;
}

Registry::Registry() : static_(read_static_registry()) {
  for (const StaticEntry& entry : static_.entries) entries_.emplace_back(entry, false);
}

// Each built-in adapter is there for programs that ask for thread safety and for those that do not, since it may be
// called by many threads and a request must be met by an entry with the same flag (RES-1). So it is two entries, and
// the instance reports the flag of the one it was opened through (PRV-ATTR-6). Only the nonthreadsafe one is listed: it
// is what a program opens that was built without a word on the matter (REG-LIST-15, ruling A3), and one line for each
// adapter is what programs expect that open whatever is listed. The other is like a Provider that registered itself
// (REG-LIST-13). An entry of dat.conf with the same tuple takes an adapter's place.
Registry::Builtins Registry::builtins(bool listed) const {
  const BuiltinNames all = builtin_names();
  Builtins result{{}, all.unseen};
  for (const std::string& name : all.names) add_tuples_of(name, listed, result.tuples);
  return result;
}

void Registry::add_tuples_of(const std::string& adapter, bool listed, std::vector<Tuple>& tuples) const {
  for (const DAT_BOOLEAN thread_safe : {DAT_FALSE, DAT_TRUE}) {
    if (listed && thread_safe == DAT_TRUE) continue;
    Tuple tuple{adapter, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, thread_safe};
    const auto overrides = [&](const StaticEntry& entry) { return entry.tuple == tuple; };
    if (std::none_of(static_.entries.begin(), static_.entries.end(), overrides)) tuples.push_back(std::move(tuple));
  }
}

std::vector<Tuple> Registry::unseen_tuples(const UnseenDevices& unseen, const std::string& name) const {
  std::vector<Tuple> tuples;
  if (unseen.may_have(name)) add_tuples_of(name, false, tuples);
  return tuples;
}

DAT_RETURN Registry::list(DAT_COUNT max, DAT_COUNT* count, DAT_PROVIDER_INFO* infos[]) {
  const char* call = "dat_registry_list_providers";
  if (!count) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: number_entries is NULL", call);
  *count = 0;
  if (static_.missing) {
    return dapl::fail(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE, "{}: the file that DAT_OVERRIDE names cannot be read", call);
  }
  std::vector<Tuple> tuples;
  for (const StaticEntry& entry : static_.entries) tuples.push_back(entry.tuple);
  if (static_.lists_builtins) {
    const Builtins builtin = builtins(true);
    tuples.insert(tuples.end(), builtin.tuples.begin(), builtin.tuples.end());
  }
  *count = static_cast<DAT_COUNT>(tuples.size());
  if (max <= 0 || max < *count) {  // REG-LIST-4, REG-LIST-5, REG-LIST-7
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: room for {}, there are {}", call, max, *count);
  }
  if (!infos || std::find(infos, infos + *count, nullptr) != infos + *count) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: the list or one of the {} elements to fill is NULL",
                      call, *count);
  }
  for (std::size_t i = 0; i < tuples.size(); ++i) *infos[i] = info_of(tuples[i]);
  return DAT_SUCCESS;
}

DAT_RETURN Registry::add(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
  const char* call = "dat_registry_add_provider";
  if (!provider || !provider->ia_open_func) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: provider or its ia_open_func is NULL", call);
  }
  const std::optional<Tuple> tuple = info ? tuple_of(*info) : std::nullopt;
  if (!tuple) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                      "{}: provider_info is NULL or its ia_name has not 1 to 255 characters", call);
  }
  const Builtins builtin = builtins(false);
  os::Guard guard(lock_);
  if (find(*tuple) || contains(builtin.tuples, *tuple)) {
    return dapl::fail(DAT_PROVIDER_ALREADY_REGISTERED, DAT_NO_SUBTYPE, "{}: {} is registered", call, in_words(*tuple));
  }
  if (contains(unseen_tuples(builtin.unseen, tuple->name), *tuple)) {
    return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY,
                      "{}: {}: no memory or descriptor to find out whether it is an adapter of this host with", call,
                      in_words(*tuple));
  }
  if (registrations_.size() >= kRegistrationsMax) {
    return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "{}: {} Providers are registered", call,
                      registrations_.size());
  }
  Entry* origin = origin_of(*tuple);
  if (origin) origin->tables.reserve(origin->tables.size() + 1);
  registrations_.push_back({*tuple, provider, provider->ia_open_func, nullptr, origin});
  Registration& made = registrations_.back();
  made.table = ForeignTables::instance().add(provider, tuple->major, tuple->minor);
  if (origin) origin->tables.push_back(made.table);
  return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
  const char* call = "dat_registry_remove_provider";
  if (!provider) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: provider is NULL", call);
  const std::optional<Tuple> tuple = info ? tuple_of(*info) : std::nullopt;
  if (!tuple) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                      "{}: provider_info is NULL or its ia_name has not 1 to 255 characters", call);
  }
  os::Guard guard(lock_);
  Registration* registration = find(*tuple);
  if (!registration) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: {} is not registered", call, in_words(*tuple));
  }
  if (registration->provider != provider) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: {} is registered by another Provider", call,
                      in_words(*tuple));
  }
  if (registration->uses > 0) {
    return dapl::fail(DAT_PROVIDER_IN_USE, DAT_NO_SUBTYPE, "{}: {} is open {} times", call, in_words(*tuple),
                      registration->uses);
  }
  erase(*registration);
  return DAT_SUCCESS;
}

Registry::Registration* Registry::find(const Tuple& tuple) {
  for (Registration& registration : registrations_) {
    if (registration.tuple == tuple) return &registration;
  }
  return nullptr;
}

Registry::Registration* Registry::best_registration(const Tuple& request) {
  Registration* best = nullptr;
  for (Registration& candidate : registrations_) {
    if (!serves(candidate.tuple, request) || (candidate.origin && candidate.origin->leaving)) continue;
    if (!best || serves_better(candidate.tuple, best->tuple)) best = &candidate;
  }
  return best;
}

// A library registers the name it was loaded for, from whatever thread. Whatever else it registers while this thread
// loads or initialises it must go with it too, although REG-INIT-4 forbids it.
Registry::Entry* Registry::origin_of(const Tuple& tuple) {
  for (Entry& entry : entries_) {
    if (entry.constant.tuple == tuple && (entry.library || entry.busy)) return &entry;
  }
  for (Entry& entry : entries_) {
    if (entry.busy && entry.worker == std::this_thread::get_id()) return &entry;
  }
  return nullptr;
}

// All entries there are, a pattern that matches `name` as an entry of that name.
std::vector<Tuple> Registry::known(std::vector<Tuple> builtin, const std::string& name) {
  for (const Entry& entry : entries_) builtin.push_back(entry.constant.tuple);
  for (const StaticEntry& pattern : static_.patterns) {
    if (!name.starts_with(prefix_of(pattern.tuple))) continue;
    builtin.push_back(pattern.tuple);
    builtin.back().name = name;
  }
  for (const Registration& registration : registrations_) builtin.push_back(registration.tuple);
  return builtin;
}

// The entry of dat.conf for a request, or null. A pattern gets an entry for the name that it is opened by; it stands
// for names that nothing else serves, neither a whole line nor, if `built_in`, one of our adapters (D2-CONF-4), which
// may have come since.
Registry::Entry* Registry::entry_for(const Tuple& request, bool built_in) {
  Entry* whole = nullptr;
  for (Entry& entry : entries_) {
    const Tuple& tuple = entry.constant.tuple;
    if ((built_in && entry.of_pattern) || !serves(tuple, request)) continue;
    if (!whole || serves_better(tuple, whole->constant.tuple)) whole = &entry;
  }
  if (whole || built_in || best_registration(request)) return whole;
  const StaticEntry* const pattern = best_pattern(static_.patterns, request);
  if (!pattern || named_.size() >= kNamedMax) return nullptr;
  StaticEntry named = *pattern;
  named.tuple.name = request.name;
  named_.push_back(std::move(named));
  try {
    return &entries_.emplace_back(named_.back(), true);
  } catch (...) {
    named_.pop_back();
    throw;
  }
}

DAT_RETURN Registry::acquire(Tuple request, Use& use) {
  const auto [builtin, unseen] = builtins(false);
  os::Guard guard(lock_);
  // Ruling A28: the prefix is a program's remark about itself, unless a name really begins so.
  if (request.name.starts_with(kAwarePrefix) && !has_name(known(builtin, {}), request.name)) {
    request.name.erase(0, kAwarePrefix.size());
  }
  // An adapter that cannot be told not to be there has the rank of one that is.
  const bool may_be_ours = unseen.may_have(request.name);
  const std::vector<Tuple> ours = may_be_ours ? unseen_tuples(unseen, request.name) : builtin;
  const Tuple* const own = best_match(ours, request, [](const Tuple& tuple) -> const Tuple& { return tuple; });
  Entry* const entry = entry_for(request, own != nullptr);
  if (entry) prepare(*entry);

  Registration* const registration = best_registration(request);
  if (registration && (!own || !serves_better(*own, registration->tuple))) {
    use.tuple_ = registration->tuple;
    use.registration_ = registration;
    ++registration->uses;
    if (registration->origin) ++registration->origin->uses;
    return DAT_SUCCESS;
  }
  if (own && !may_be_ours) {
    use.tuple_ = *own;
    return DAT_SUCCESS;
  }
  if (may_be_ours) {  // IA-OPEN-25: it is not said to be none
    return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY,
                      "dat_ia_open: {}: no memory or descriptor to ask for the devices of this host with",
                      in_words(request));
  }
  const char* why = "no adapter has that name; datinfo lists the names there are";
  const DAT_RETURN subtype = not_found_subtype(known(builtin, request.name), request);
  if (subtype == DAT_MAJOR_NOT_FOUND) why = "the adapter is there with other major versions only";
  if (subtype == DAT_MINOR_NOT_FOUND) why = "the adapter is there with smaller minor versions only";
  if (subtype == DAT_THREAD_SAFETY_NOT_FOUND) why = "the adapter is there with the other thread safety only";
  if (entry && !entry->failure.empty()) why = entry->failure.c_str();
  return dapl::fail(DAT_PROVIDER_NOT_FOUND, subtype, "dat_ia_open: {}: {}", in_words(request), why);
}

// RES-4: afterwards the entry's Provider has registered itself, or it is not to be had.
void Registry::prepare(Entry& entry) {
  while (entry.busy && entry.worker != std::this_thread::get_id()) no_longer_busy_.wait(lock_);
  // Its own dat_provider_init() asks for it: there is nothing to wait for.
  if (entry.busy) return;
  // Also if something other than the library has registered it (REG-INIT-7): init must not be called twice for a name
  // (REG-INIT-8).
  if (find(entry.constant.tuple)) return;
  load(entry);
}

void Registry::load(Entry& entry) {
  const Work work(*this, entry);
  entry.failure.clear();
  // It is loaded already if the Provider has taken its registration back since (REG-INIT-1).
  for (const StaticLibrary& candidate : entry.constant.libraries) {
    if (entry.library) break;
    std::unique_ptr<Library> library;
    std::string why;
    {
      const Unlocked unlocked(lock_);
      library = Library::open(candidate.path, why);
    }
    if (library) {
      entry.library = std::move(library);
      entry.source = &candidate;
    } else {
      env::log(env::LogLevel::warn, "dat_ia_open: {}: {}", in_words(entry.constant.tuple), why);
      entry.failure = std::move(why);
    }
  }
  if (!entry.library) return;
  bool is_provider = false;
  {
    const Unlocked unlocked(lock_);
    is_provider = entry.library->init(entry.info, entry.source->instance_data);
  }
  if (find(entry.constant.tuple)) return;
  // RES-8, and no other library is tried (RES-6).
  entry.failure = entry.source->path;
  entry.failure += is_provider ? " has not registered that name" : " exports no " DAT_PROVIDER_INIT_FUNC_STR;
  if (unused(entry)) unload(entry, is_provider);
}

// Whether the library may go: nothing is open through it, and no thread is inside (REG-FINI-7).
bool Registry::unused(const Entry& entry) {
  if (entry.uses > 0) return false;
  // First this, then the look at who is inside: a thread that leaves after the look finds it set.
  postponed_.store(true);
  return std::none_of(entry.tables.begin(), entry.tables.end(),
                      [](const ForeignTable* table) { return table->calls.load() > 0; });
}

// Requires: the entry is unused, and if it is busy, then with work of this thread.
void Registry::unload(Entry& entry, bool initialised) {
  const Work work(*this, entry);
  entry.leaving = true;
  if (initialised) {
    const Unlocked unlocked(lock_);
    entry.library->fini(entry.info);
  }
  // REG-FINI-5.
  for (auto it = registrations_.begin(); it != registrations_.end();) {
    Registration& registration = *it++;
    if (registration.origin == &entry) erase(registration);
  }
  entry.tables.clear();
  std::unique_ptr<Library> library = std::move(entry.library);
  {
    const Unlocked unlocked(lock_);
    library.reset();
  }
  entry.leaving = false;
}

void Registry::sweep() {
  os::Guard guard(lock_);
  postponed_.store(false);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (!entry->library || entry->busy || !unused(*entry)) {
      ++entry;
      continue;
    }
    unload(*entry, true);
    postponed_.store(false);
    entry = entries_.begin();  // anything may have happened meanwhile
  }
}

void Registry::erase(Registration& registration) {
  ForeignTables::instance().drop(registration.table);
  registrations_.remove_if([&](const Registration& other) { return &other == &registration; });
}

void Registry::end_use(Registration& registration) {
  --registration.uses;
  if (registration.origin) --registration.origin->uses;
}

Registry::Use::~Use() {
  if (!registration_) return;
  Registry& registry = instance();
  os::Guard guard(registry.lock_);
  registry.end_use(*registration_);
}

DAT_IA_OPEN_FUNC Registry::Use::open_function() const {
  return registration_->open;
}

const ForeignTable& Registry::Use::table() const {
  return *registration_->table;
}

void Registry::opened(Use&& use, DAT_IA_HANDLE ia, bool ours) {
  if (!use.registration_) return;  // built in: it cannot be removed, so its uses do not count
  ForeignTable* table = nullptr;
  if (!ours) {
    // HND-9. As a rule it is the table that was registered.
    std::uintptr_t word = 0;
    const bool readable = os::read_word(ia, word) && word != 0;
    table = ForeignTables::instance().add(
        readable ? reinterpret_cast<const DAT_PROVIDER*>(word) : use.registration_->provider,
        use.registration_->tuple.major, use.registration_->tuple.minor);
  }
  os::Guard guard(lock_);
  if (const auto old = instances_.find(ia); old != instances_.end()) {
    // Its Provider has given the handle out again, so the old instance is gone: closed without our knowledge (through
    // the table, by the DAT_IA_CLOSE macro), or being closed by a thread that has not come to end_close() yet.
    end(old->second);
    instances_.erase(old);
  }
  // Without memory nothing is noted of it, and the use is still the caller's.
  try {
    instances_.emplace(ia, Instance{++last_instance_, use.registration_, table});
    Entry* const origin = use.registration_->origin;
    if (origin && table && std::find(origin->tables.begin(), origin->tables.end(), table) == origin->tables.end()) {
      origin->tables.push_back(table);
    }
  } catch (...) {
    instances_.erase(ia);
    if (table) ForeignTables::instance().drop(table);
    throw;
  }
  use.registration_ = nullptr;
}

std::uint64_t Registry::begin_close(DAT_IA_HANDLE ia) {
  os::Guard guard(lock_);
  const auto found = instances_.find(ia);
  return found != instances_.end() ? found->second.number : 0;
}

void Registry::end_close(DAT_IA_HANDLE ia, std::uint64_t number) {
  os::Guard guard(lock_);
  const auto found = instances_.find(ia);
  if (found == instances_.end() || found->second.number != number) return;
  end(found->second);
  instances_.erase(found);
}

void Registry::end(const Instance& instance) {
  if (instance.table) ForeignTables::instance().drop(instance.table);
  end_use(*instance.registration);
}

std::optional<bool> Registry::knows(const std::string& name) {
  Builtins builtin = builtins(false);
  os::Guard guard(lock_);
  if (has_name(known(std::move(builtin.tuples), name), name)) return true;
  if (builtin.unseen.may_have(name)) return std::nullopt;
  return false;
}

bool Registry::is_built_in(const std::string& name) const {
  return has_name(builtins(false).tuples, name);
}

DAT_IA_HANDLE Registry::open_instance(const std::string& name) {
  os::Guard guard(lock_);
  for (const auto& [ia, instance] : instances_) {
    if (instance.registration->tuple.name == name) return ia;
  }
  return DAT_HANDLE_NULL;
}

ForeignTable* Registry::foreign_instance(DAT_IA_HANDLE ia) {
  os::Guard guard(lock_);
  const auto found = instances_.find(ia);
  return found != instances_.end() ? found->second.table : nullptr;
}

}  // namespace anydat::registry
