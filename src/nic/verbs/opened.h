// SPDX-License-Identifier: BSD-3-Clause
// What libibverbs and librdmacm hand out with descriptors in it, which they use by fields that everybody can see.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "os/descriptors.h"

namespace anydat::nic::verbs {

// Owns an object with descriptors in kFields, and treats them as the library's own: they have numbers out of the
// program's way, the child of a fork does not keep them, and those that the program has closed are not used any more.
template <typename T, auto kDestroy, int T::*... kFields>
class Opened {
 public:
  Opened() = default;
  Opened(Opened&& other) noexcept : object_(std::exchange(other.object_, nullptr)), tickets_(other.tickets_) {}
  Opened& operator=(Opened&& other) noexcept {
    if (this != &other) {
      reset();
      object_ = std::exchange(other.object_, nullptr);
      tickets_ = other.tickets_;
    }
    return *this;
  }
  ~Opened() { reset(); }

  // Of what `open` returns, which may be null; errno is that of `open` then. No fork comes between.
  template <typename Open>
  static Opened of(Open&& open) {
    Opened result;
    const os::ForkHeldOff held_off;
    result.object_ = open();
    if (result.object_) result.tickets_ = {take_over(result.object_->*kFields)...};
    return result;
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

  // The program has closed descriptors: where a number is not ours any more, the library that made the object gets one
  // that is no file's. Its calls fail, and no file of the program's is touched.
  void note_loss() {
    if (!object_) return;
    std::size_t i = 0;
    (note_loss(object_->*kFields, tickets_[i++]), ...);
  }

  // The library that made it finds the descriptors closed, which is all that it would do with them.
  void reset() {
    if (!object_) return;
    {
      const os::ForkHeldOff held_off;
      std::size_t i = 0;
      (close(object_->*kFields, tickets_[i++]), ...);
    }
    kDestroy(std::exchange(object_, nullptr));
  }

 private:
  using Ticket = os::Descriptors::Ticket;
  static Ticket take_over(int& fd) {
    fd = os::Descriptors::move_up(fd);
    return os::Descriptors::note(fd);
  }
  static void note_loss(int& fd, Ticket ticket) {
    if (fd >= 0 && !os::Descriptors::is_ours(fd, ticket)) fd = -1;
  }

  static void close(int& fd, Ticket ticket) {
    if (fd >= 0) os::Descriptors::close(std::exchange(fd, -1), ticket);
  }

  T* object_ = nullptr;
  std::array<Ticket, sizeof...(kFields)> tickets_{};
};

}  // namespace anydat::nic::verbs
