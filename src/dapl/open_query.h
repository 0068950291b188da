// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "dapl/error.h"
#include "dapl/ia_description.h"
#include "dapl/object.h"
#include "os/lock.h"

namespace anydat::dapl {

// An adapter that has been asked about and not opened (D2-QUERY): what it says of itself, behind a handle. It belongs
// to no instance and nothing runs for it.
//
// Thread safety: any thread may call anything; one lock for all of them keeps a handle from being closed meanwhile.
class Query final : public Object {
 public:
  static constexpr HandleType kType = HandleType::query;

  static Error open(const AdapterKind& kind, const char* name, Handle* handle);
  // Calls use(const Description&) and returns what that does; null: the handle is none of a query.
  template <typename Use>
  static std::optional<Error> with(Handle handle, Use use) {
    if (!lookup<Query>(handle)) return std::nullopt;
    os::Guard guard(lock());
    const Query* const query = lookup<Query>(handle);
    return query ? std::optional<Error>(use(query->description_)) : std::nullopt;
  }
  // False: the handle is none of a query.
  static bool close(Handle handle);

 private:
  Query(const AdapterKind& kind, const char* name, const nic::AdapterInfo& info)
      : Object(kType), description_(kind, name, info) {}
  static os::Mutex& lock();

  const Description description_;
};

}  // namespace anydat::dapl
