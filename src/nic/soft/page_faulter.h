// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "nic/engine.h"
#include "nic/timer.h"

namespace anydat::nic::soft {

// Has pages of this process brought into memory, by threads that hold nothing and that no other thread waits for: a
// page may never come. A thread that is stuck in one outlives the adapter, until the page comes or the process ends. It
// touches nothing else meanwhile and changes no byte, so the memory may be freed and used for other things. No second
// thread goes into the same page, however often it is asked for.
//
// Thread safety: all with the engine held, but for construction and destruction.
class PageFaulter {
  struct Job;
  struct Shared;

 public:
  explicit PageFaulter(Engine& engine);
  ~PageFaulter();  // Requires: nothing is pending.

  struct Pages {
    std::uint64_t begin;
    std::uint64_t end;
  };

  // What is to be told when the pages are there. Its owner cancels it before it goes.
  class Request {
   public:
    // `there`, `untold`: as os::fault_in(), of all, and which they are. Where the system has no room for a thread, it
    // takes until there is room. Called with the engine held, from nowhere in particular.
    explicit Request(std::function<void(bool there, std::span<const Pages> untold)> done) : done_(std::move(done)) {}
    bool pending() const { return job_ != nullptr; }

   private:
    friend class PageFaulter;
    std::function<void(bool there, std::span<const Pages> untold)> done_;
    Job* job_ = nullptr;
  };

  // Requires: it is not pending. May throw std::bad_alloc, and has done nothing then.
  void ask(Request& request, std::uint64_t address, std::uint64_t length, bool to_write);
  void cancel(Request& request);

 private:
  void tell();
  void add_threads();
  bool start_thread();

  Engine& engine_;
  Task task_;
  Timer thread_retry_;
  std::shared_ptr<Shared> shared_;  // made by the first ask()
};

}  // namespace anydat::nic::soft
