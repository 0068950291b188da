// SPDX-License-Identifier: BSD-3-Clause
// What fork() means for the library. The child of a fork has a copy of the parent's memory and its descriptors, but
// none of its other threads: locks may be held for ever and lists may be half changed. The child therefore uses nothing
// that the parent has made: its handler closes the descriptors of the library (os/descriptors.h) and has each thing
// of the process begun anew. The handler takes no lock and no memory. What the parent's objects hold stays as it is,
// unused.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "os/lock.h"

namespace anydat::os {

// What the child resets, in a list of the whole process. The object is never destroyed.
class AfterFork {
 public:
  using Reset = void (*)(void* object);
  constexpr AfterFork(Reset reset, void* object) : reset_(reset), object_(object) {}

  // The child calls reset(object) from now on. Any thread, as often as it likes.
  void enlist();

 private:
  friend void begin_anew_after_fork();
  const Reset reset_;
  void* const object_;
  AfterFork* next_ = nullptr;
  std::atomic<bool> enlisted_{false};
};

// How many forks lie between this process and the one that loaded the library.
std::uint32_t forks();

// The one T of a process: made when it is first asked for, never destroyed, since programs call DAT from their own
// destructors too. A child makes another one; its locks are new with it. For objects of static storage duration, which
// are there before any constructor has run.
template <typename T>
class PerProcess {
 public:
  constexpr PerProcess() = default;

  T& get() {
    T* const made = made_.load(std::memory_order_acquire);
    return made ? *made : make();
  }
  T& operator*() { return get(); }
  T* operator->() { return &get(); }

 private:
  T& make() {
    after_fork_.enlist();
    Guard guard(lock_);
    T* made = made_.load(std::memory_order_acquire);
    if (!made) {
      made = new T;
      made_.store(made, std::memory_order_release);
    }
    return *made;
  }
  static void reset(void* object) {
    auto* const self = static_cast<PerProcess*>(object);
    std::construct_at(&self->lock_);
    self->made_.store(nullptr, std::memory_order_relaxed);
  }

  std::atomic<T*> made_{nullptr};
  Mutex lock_;
  AfterFork after_fork_{reset, this};
};

}  // namespace anydat::os
