// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/open_query.h"

#include "os/fork.h"

namespace anydat::dapl {

namespace {

struct Queries {
  os::Mutex lock;
};
constinit os::PerProcess<Queries> queries;

}  // namespace

os::Mutex& Query::lock() {
  return queries->lock;
}

Error Query::open(const AdapterKind& kind, const char* name, Handle* handle) {
  const char* call = "dat_ib_open_query";
  nic::AdapterInfo info;
  std::string why;
  if (const nic::Status status = kind.ask(kind.adapter, info, why); status != nic::Status::ok) {
    return no_adapter(call, name, kind, status, why);
  }
  std::unique_ptr<Query> query(new Query(kind, name, info));
  query->slot_ = HandleTable::instance().add(kind.table, kType, *query);
  if (!query->slot_) return fail(Code::insufficient_resources, Detail::memory, "{}: no handle is free", call);
  *handle = query.release()->handle();
  return kSuccess;
}

bool Query::close(Handle handle) {
  os::Guard guard(lock());
  Query* const query = lookup<Query>(handle);
  if (!query) return false;
  HandleTable::instance().remove(query->slot_);
  delete query;
  return true;
}

}  // namespace anydat::dapl
