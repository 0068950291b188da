// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ia.h"

#include <algorithm>
#include <new>

#include "dapl/cno.h"
#include "dapl/counters.h"
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/instances.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/rmr.h"
#include "dapl/service_point.h"
#include "dapl/srq.h"

namespace anydat::dapl {

namespace {

// Freed objects that stay in memory (see the class comment).
constexpr std::size_t kRestingMax = 64;

Error no_async_evd(Handle wanted, const char* name) {
  return fail(Code::invalid_handle, Detail::handle_evd_async,
              "dat_ia_open: {} is no live async EVD of an instance of {}", wanted, name);
}

Error check_async_qlen(Count qlen) {
  if (qlen <= 0) return fail(Argument::async_evd_min_qlen, "dat_ia_open: async_evd_min_qlen {} is not positive", qlen);
  if (qlen <= Limits{}.max_evd_qlen) return kSuccess;
  return fail(Code::insufficient_resources, Detail::evd, "dat_ia_open: async_evd_min_qlen {} exceeds max_evd_qlen {}",
              qlen, Limits{}.max_evd_qlen);
}

}  // namespace

Ia::Ia(const AdapterKind& kind, std::string name, std::unique_ptr<nic::Adapter> nic)
    : Object(*this, kType),
      description_(kind, std::move(name), nic->info()),
      nic_(std::move(nic)),
      engine_(&nic_->engine()) {}

Ia::~Ia() = default;

bool Ia::join_instances(std::list<Ia*>& place, Evd* async_evd, Handle named, const Ia* owner) {
  Instances& instances = Instances::get();
  os::Guard guard(instances);
  std::list<Ia*>& open = instances.open();
  if (owner && (std::find(open.begin(), open.end(), owner) == open.end() || lookup<Evd>(named) != async_evd))
    return false;
  if (async_evd) {
    os::Guard engine(async_evd->ia().engine());
    if (!async_evd->alive()) return false;
    async_evd->change_streams([](StreamCounts& counts) { ++counts.others; });
  }
  place.front()->async_evd_.store(async_evd);
  open.splice(open.end(), place);
  return true;
}

Error Ia::open(const AdapterKind& kind, const char* name, Count async_min_qlen, Handle* async_evd, Handle* handle) {
  const Handle wanted = *async_evd;
  const bool creates = !wanted;
  const bool elsewhere = wanted == kEvdExists;
  if (const Error error = creates ? check_async_qlen(async_min_qlen) : kSuccess) return error;
  Evd* shared = nullptr;
  const Ia* owner = nullptr;
  if (!creates && !elsewhere) {
    shared = lookup<Evd>(wanted);
    if (!shared || !shared->carries(evd_flag::kAsync) || shared->ia().name() != name) return no_async_evd(wanted, name);
    owner = &shared->ia();
  }
  nic::Status status = nic::Status::ok;
  std::string why;
  std::unique_ptr<nic::Adapter> nic = kind.make(kind.adapter, status, why);
  if (!nic) return no_adapter("dat_ia_open", name, kind, status, why);
  std::unique_ptr<Ia> ia(new Ia(kind, name, std::move(nic)));
  std::list<Ia*> place{ia.get()};
  std::unique_ptr<Evd> made = creates ? std::make_unique<Evd>(*ia, evd_flag::kAsync) : nullptr;
  // From here on nothing throws.
  ia->slot_ = HandleTable::instance().add(kind.table, kType, *ia);
  if (!ia->slot_) return fail(Code::insufficient_resources, Detail::memory, "dat_ia_open: no handle is free");
  Evd* evd = shared;
  if (creates) {
    os::Guard guard(ia->engine());
    evd = made->init(async_min_qlen) ? ia->adopt(std::move(made)) : nullptr;
    if (!evd) {
      HandleTable::instance().remove(ia->slot_);
      return fail(Code::insufficient_resources, Detail::memory, "dat_ia_open: no memory for the async EVD");
    }
  }
  ia->owns_async_evd_ = creates;
  ia->async_exists_elsewhere_ = elsewhere;
  if (!join_instances(place, evd, wanted, owner)) {
    HandleTable::instance().remove(ia->slot_);
    return no_async_evd(wanted, name);
  }
  {
    os::Guard guard(ia->engine());
    ia->nic().report_to(ia.get());
  }
  if (creates) *async_evd = evd->handle();
  if (elsewhere) *async_evd = kEvdOutOfScope;  // IA-OPEN-17
  *handle = ia.release()->handle();
  return kSuccess;
}

Error Ia::close(Ia& ia, CloseFlags flags) {
  if (flags != CloseFlags::abrupt && flags != CloseFlags::graceful) {
    return fail(Argument::ia_flags, "dat_ia_close: flags {:#x} are neither abrupt nor graceful",
                static_cast<unsigned>(flags));
  }
  Evd* borrowed = nullptr;
  {
    Instances& instances = Instances::get();
    os::Guard guard(instances);
    std::list<Ia*>& open = instances.open();
    // An async EVD of this instance, its own or one that the program has made here, may serve others.
    const auto served_by_ours = [&](const Ia* other) {
      const Evd* const evd = other->async_evd_.load();
      return other != &ia && evd && &evd->ia() == &ia;
    };
    if (flags == CloseFlags::graceful && std::any_of(open.begin(), open.end(), served_by_ours)) {
      return fail(Code::invalid_state, Detail::ia_in_use,
                  "dat_ia_close: another open instance shares an async EVD of this one");
    }
    if (flags == CloseFlags::graceful) {
      os::Guard engine(ia.engine());
      if (ia.anything_of_the_consumers()) {
        return fail(Code::invalid_state, Detail::ia_in_use, "dat_ia_close: objects of the instance still exist");
      }
    }
    std::erase(open, &ia);
    instances.end_loans(ia);
    for (Ia* other : open) {
      if (!served_by_ours(other)) continue;
      // Ruling A40. A thread that is just reporting something there has this lock.
      os::Guard reporting(other->async_lock_);
      other->async_evd_.store(nullptr);
    }
    if (!ia.owns_async_evd_) borrowed = ia.async_evd_.load();
    if (borrowed) {
      // Under the lock: its owner cannot go meanwhile.
      os::Guard engine(borrowed->ia().engine());
      borrowed->change_streams([](StreamCounts& counts) { --counts.others; });
    }
    os::Guard reporting(ia.async_lock_);
    ia.async_evd_.store(nullptr);
  }
  HandleTable::instance().remove(ia.slot_);
  ia.destroy_everything();
  // An agent that is just calling may wait for the engine, and finds its objects dead but still there.
  ia.agents_->close();
  {
    os::Guard guard(ia.engine());
    ia.resting_.clear();
  }
  log_counters(ia);
  delete &ia;
  return kSuccess;
}

bool Ia::anything_of_the_consumers() const {
  for (const auto& list : objects_) {
    for (const auto& object : list) {
      if (object->type() == HandleType::cr) continue;  // ruling A39
      if (object.get() == async_evd_.load() && owns_async_evd_) continue;
      if (object->type() == HandleType::ep &&
          static_cast<const Ep&>(*object).state() == EpState::tentative_connection_pending) {
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
    os::Guard guard(engine());
    closing_ = true;
    for (const HandleType type : {HandleType::psp, HandleType::rsp, HandleType::csp, HandleType::cr}) retire_all(type);
    // The program may use the memory of its buffers for other things as soon as we return.
    bool quiet = true;
    for (auto& object : of(HandleType::ep)) quiet &= static_cast<Ep&>(*object).cut();
    for (auto& object : of(HandleType::rmr)) quiet &= static_cast<Rmr&>(*object).cut();
    if (!quiet) continue;
    for (const HandleType type : {HandleType::ep, HandleType::srq, HandleType::rmr, HandleType::lmr, HandleType::pz,
                                  HandleType::evd, HandleType::cno}) {
      retire_all(type);
    }
    nic().report_to(nullptr);
    return;
  }
}

void Ia::retire_all(HandleType type) {
  while (!of(type).empty()) retire(*of(type).front());
}

Object* Ia::adopt_object(std::unique_ptr<Object> object) {
  auto& list = of(object->type());
  if (list.size() >= static_cast<std::size_t>(limit_of(object->type()))) return nullptr;
  std::list<std::unique_ptr<Object>> one;
  try {
    one.push_back(std::move(object));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  Object& adopted = *one.front();
  adopted.slot_ = HandleTable::instance().add(kind().table, adopted.type(), adopted);
  if (!adopted.slot_) return nullptr;
  adopted.place_ = one.begin();
  list.splice(list.end(), one);
  counters_.created[static_cast<std::size_t>(adopted.type())].add();
  return &adopted;
}

void Ia::retire(Object& object) {
  log_counters(object);
  counters_.freed[static_cast<std::size_t>(object.type())].add();
  reset_counts_.forget(object);
  put_to_rest(object);
}

void Ia::abandon(Object& object) {
  base::Counter& created = counters_.created[static_cast<std::size_t>(object.type())];
  created.set(created.get() - 1);
  put_to_rest(object);
}

void Ia::put_to_rest(Object& object) {
  HandleTable::instance().remove(object.slot_);
  switch (object.type()) {
    case HandleType::cr:
      static_cast<Cr&>(object).shut_down();
      break;
    case HandleType::ep:
      static_cast<Ep&>(object).shut_down();
      break;
    case HandleType::evd:
      static_cast<Evd&>(object).shut_down();
      break;
    case HandleType::lmr:
      static_cast<Lmr&>(object).shut_down();
      break;
    case HandleType::psp:
      static_cast<Psp&>(object).shut_down();
      break;
    case HandleType::rsp:
      static_cast<Rsp&>(object).shut_down();
      break;
    case HandleType::csp:
      static_cast<Csp&>(object).shut_down();
      break;
    case HandleType::rmr:
      static_cast<Rmr&>(object).shut_down();
      break;
    case HandleType::srq:
      static_cast<Srq&>(object).shut_down();
      break;
    case HandleType::cno:
      static_cast<Cno&>(object).shut_down();
      break;
    default:
      break;
  }
  auto& list = of(object.type());
  resting_.splice(resting_.end(), list, object.place_);
  if (resting_.size() <= kRestingMax || closing_) return;
  const auto oldest = std::find_if(resting_.begin(), resting_.end(), [](auto& resting) { return !resting->in_use(); });
  if (oldest != resting_.end()) resting_.erase(oldest);
}

Count Ia::limit_of(HandleType type) const {
  switch (type) {
    case HandleType::ep:
      return limits().max_eps;
    case HandleType::evd:
      return limits().max_evds;
    case HandleType::lmr:
      return limits().max_lmrs;
    case HandleType::rmr:
      return limits().max_rmrs;
    case HandleType::pz:
      return limits().max_pzs;
    case HandleType::srq:
      return limits().max_srqs;
    case HandleType::cno:
      return limits().max_cnos;
    case HandleType::psp:
    case HandleType::rsp:
    case HandleType::csp:
      return limits().max_service_points;
    default:
      return 1 << 20;
  }
}

void Ia::for_each_evd(const std::function<void(Evd&)>& f) ANYDAT_NO_ANALYSIS {
  for (auto& object : of(HandleType::evd)) f(static_cast<Evd&>(*object));
  if (borrows_.load()) Instances::get().for_each_borrowed(*this, f);
}

void Ia::forget_evd(Handle evd) {
  for (auto& object : of(HandleType::cno)) static_cast<Cno&>(*object).forget_handle(evd);
  agents_->forget(evd);
}

void Ia::give_back(Evd& evd) {
  for (auto& object : of(HandleType::ep)) static_cast<Ep&>(*object).configuration().give_back(evd);
}

void Ia::give_back_all() ANYDAT_NO_ANALYSIS {
  os::Guard guard(engine());
  Instances::get().for_each_borrowed(*this, [this](Evd& evd) {
    give_back(evd);
    for (auto& object : of(HandleType::srq)) evd.forget(static_cast<Srq&>(*object).queue());
  });
  borrows_.store(false);
}

Error Ia::out_of(const char* call, const char* what, Detail detail) const {
  return fail(Code::insufficient_resources, detail, "{}: {} has no more {}", call, name(), what);
}

void Ia::post_async(const Object& object, EventKind kind, std::uint32_t reason) {
  // EVM-55. This is also how its own overflow, below, gets back here.
  if (kind == EventKind::evd_overflow && async_evd_.load() == &object) return;
  os::Guard guard(async_lock_);
  (kind == EventKind::ep_broken      ? counters_.ep_errors
   : kind == EventKind::evd_overflow ? counters_.evd_errors
                                     : counters_.other_errors)
      .add();
  Evd* evd = async_evd_.load();
  if (!evd) return;
  Event event{};
  event.kind = kind;
  event.object = object.handle();
  event.detail = reason;
  evd->push(event);
}

// EVT-34, EVT-35.
void Ia::on_failure() {
  post_async(*this, EventKind::ia_catastrophic, async_reason::kIaCatastrophic);
}

// The adapter lives, so it is not the event of a catastrophe.
void Ia::on_fault() {
  post_async(*this, EventKind::provider_internal_error, async_reason::kIaOther);
}

Handle Ia::async_evd() const {
  os::Guard guard(async_lock_);
  const Evd* evd = async_evd_.load();
  return evd ? evd->handle() : kEvdOutOfScope;
}

}  // namespace anydat::dapl
