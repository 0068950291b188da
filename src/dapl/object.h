// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <memory>

#include "dapl/error.h"
#include "dapl/handle_table.h"

namespace anydat::dapl {

class Ia;

// What all DAT objects have in common: an owner and a handle. An object is made and freed with its adapter's engine
// held, and belongs to its IA's list; the IA itself to none.
class Object {
 public:
  Object(Ia& ia, HandleType type) : ia_(&ia), type_(type) {}
  // What belongs to no instance, and is not to be asked for one.
  explicit Object(HandleType type) : ia_(nullptr), type_(type) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Ia& ia() const { return *ia_; }
  HandleType type() const { return type_; }
  Handle handle() const { return slot_; }
  // With the engine held: whether it has not been freed. Its handle was looked up without, so another thread may have.
  bool alive() const { return slot_ && slot_->object.load(std::memory_order_acquire) == this; }
  // Freed, but something that is still to come refers to it.
  virtual bool in_use() const { return false; }

 private:
  friend class Ia;
  friend class Query;
  Ia* const ia_;
  const HandleType type_;
  HandleSlot* slot_ = nullptr;
  std::list<std::unique_ptr<Object>>::iterator place_;
};

// What has been given to a call and freed before it had the engine.
inline Error freed_meanwhile(const char* call, const char* what, Detail detail) {
  return fail(Code::invalid_handle, detail, "{}: the {} was freed meanwhile", call, what);
}

// The live object of class T behind a handle, or null.
template <typename T>
T* lookup(Handle handle) {
  if (!HandleTable::is_slot(handle)) return nullptr;
  const auto* slot = static_cast<const HandleSlot*>(handle);
  if (slot->type.load(std::memory_order_acquire) != T::kType) return nullptr;
  return static_cast<T*>(slot->object.load(std::memory_order_acquire));  // null if it is free
}

}  // namespace anydat::dapl
