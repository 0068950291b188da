// SPDX-License-Identifier: BSD-3-Clause
// pthread_cancel() of a thread that is inside the library. Asynchronous cancelling is not supported.
#pragma once

#include <pthread.h>

namespace anydat::os {

// The calling thread cannot be cancelled for the length of a scope.
class CancelOff {
 public:
  CancelOff() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancelOff() {
    if (before_ != PTHREAD_CANCEL_DISABLE) pthread_setcancelstate(before_, nullptr);
  }
  CancelOff(const CancelOff&) = delete;
  CancelOff& operator=(const CancelOff&) = delete;

  bool was_on() const { return before_ == PTHREAD_CANCEL_ENABLE; }

 private:
  int before_ = PTHREAD_CANCEL_DISABLE;
};

// Within the scope of a CancelOff, for a sleep that may be where the thread ends: it can be cancelled if `on` says so.
// Cancelling unwinds the stack as an exception does.
class CancelOn {
 public:
  explicit CancelOn(bool on) : on_(on) {
    if (on_) pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  }
  ~CancelOn() {
    if (on_) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  }
  CancelOn(const CancelOn&) = delete;
  CancelOn& operator=(const CancelOn&) = delete;

 private:
  const bool on_;
};

}  // namespace anydat::os
