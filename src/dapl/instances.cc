// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/instances.h"

#include <algorithm>

#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"

namespace anydat::dapl {

namespace {

constinit os::PerProcess<Instances> the_instances;

}  // namespace

Instances& Instances::get() {
  return *the_instances;
}

void Instances::lend(Evd& evd, Ia& borrower) {
  loans_.emplace(&evd, &borrower);
  evd.note_lent();
  borrower.note_borrowing();
}

void Instances::forget(Evd& evd) {
  std::erase_if(loans_, [&](const auto& loan) { return loan.first == &evd; });
}

void Instances::end_loans(Ia& closing) {
  closing.give_back_all();
  std::erase_if(loans_, [&](const auto& loan) { return loan.second == &closing; });
  for (const auto& [evd, borrower] : loans_) {
    if (&evd->ia() != &closing) continue;
    os::Guard guard(borrower->engine());
    borrower->give_back(*evd);
    evd->count_as_reaped();
  }
  std::erase_if(loans_, [&](const auto& loan) { return &loan.first->ia() == &closing; });
}

void Instances::poll_borrowers(const Evd& evd) ANYDAT_NO_ANALYSIS {
  // The thread that has the lock may be waiting for the engine of the thread that asks.
  if (!try_lock()) return;
  for (const auto& [lent, borrower] : loans_) {
    if (lent == &evd) borrower->engine().poll();
  }
  unlock();
}

EvdsOfCall::EvdsOfCall(Ia& ia, std::initializer_list<Handle> evds) ANYDAT_NO_ANALYSIS : ia_(ia) {
  holds_ = ia.habits().evds_of_other_instances && std::any_of(evds.begin(), evds.end(), [&](Handle handle) {
             const Evd* const evd = handle ? lookup<Evd>(handle) : nullptr;
             return evd && &evd->ia() != &ia;
           });
  if (holds_) Instances::get().lock();
}

EvdsOfCall::~EvdsOfCall() ANYDAT_NO_ANALYSIS {
  if (holds_) Instances::get().unlock();
}

bool EvdsOfCall::allows(Evd& evd) const ANYDAT_NO_ANALYSIS {
  if (&evd.ia() == &ia_) return true;
  if (!holds_) return false;
  Instances& instances = Instances::get();
  const std::list<Ia*>& open = instances.open();
  // An instance that closes is not in the list any more, while its objects still have handles.
  const auto is_open = [&](const Ia& ia) { return std::find(open.begin(), open.end(), &ia) != open.end(); };
  if (!is_open(evd.ia()) || !is_open(ia_) || !evd.ia().same_adapter(ia_)) return false;
  instances.lend(evd, ia_);
  return true;
}

Error EvdsOfCall::refuse(const Evd& evd, const char* call, const char* argument, Detail detail) const {
  if (!evd.ia().same_adapter(ia_)) {
    return fail(Code::invalid_handle, detail, "{}: {} is of an instance of another adapter", call, argument);
  }
  return fail(Code::invalid_handle, detail, "{}: {} is of another instance{}", call, argument,
              ia_.habits().evds_of_other_instances.hint);
}

}  // namespace anydat::dapl
