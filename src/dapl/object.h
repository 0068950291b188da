// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <memory>

#include "dapl/handle.h"

namespace anydat::dapl {

class Ia;

// What all DAT objects have in common: an owner and a handle. An object is made and freed with its adapter's engine
// held, and belongs to its IA's list; the IA itself to nobody.
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

// The live object of class T behind a handle, or null.
template <typename T>
T* lookup(Handle handle) {
  if (!HandleTable::is_slot(handle)) return nullptr;
  const auto* slot = static_cast<const HandleSlot*>(handle);
  if (slot->type.load(std::memory_order_acquire) != T::kType) return nullptr;
  return static_cast<T*>(slot->object.load(std::memory_order_acquire));  // null if it is free
}

}  // namespace anydat::dapl
