// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "nic/engine.h"
#include "os/thread.h"

namespace anydat::nic::verbs {

// Calls of the kernel that come back when another host likes, each in a thread of its own: soft-iWARP's rdma_connect()
// waits for the answer to a TCP SYN, two minutes long where a firewall swallows it, and the end of an attempt for the
// answer to that. Threads end when there is nothing to do.
//
// Thread safety: with the engine held, but for what runs in the threads.
class KernelCalls {
 public:
  class Call;
  using Ref = std::shared_ptr<Call>;

  explicit KernelCalls(Engine& engine) : engine_(engine), task_{[this] { call_done(); }} {}
  ~KernelCalls() { stop(); }

  // `run` is called without the engine, and answers with an error number or 0; the thread may be cancelled where it
  // says so (os::CancelOn). Then `done` is called with the engine, once; it must not throw. It is told that answer, or
  // ECANCELED or ENOMEM where `run` has not been called, or EINTR where it was cancelled: then what it did may have
  // been done all the same. May throw std::bad_alloc.
  Ref start(std::function<int()> run, std::function<void(int error)> done);
  // All threads that there may be are there.
  bool crowded() const { return workers_.size() >= kThreads; }
  // A thread is in it, or has been.
  bool has_begun(const Call& call);
  // Its answer is of no interest any more: the call ends as soon as the kernel lets it.
  void cancel(Call& call);
  // Waits until a call is over, or makes it here if no thread has begun it. It is not told of.
  void await(Call& call);
  // No thread is there afterwards, and every call is done. Without the engine.
  void stop();

 private:
  struct Worker {
    os::Thread thread;
    std::list<Ref> at;   // the call that it is in
    bool ends = false;   // after this call, since it has been cancelled
    bool ended = false;  // but for being joined
  };
  static constexpr std::size_t kThreads = 64;

  void begin_worker();
  void fail_waiting(int error);
  void work(Worker& self);
  void finish(Worker& self, int error);
  void call_done();

  Engine& engine_;
  Task task_;
  std::mutex lock_;  // a leaf
  std::condition_variable changed_;
  std::list<Ref> waiting_;
  std::list<Ref> done_;
  std::list<Worker> workers_;
  bool stopping_ = false;  // nothing is begun any more; written and read with the engine held
};

class KernelCalls::Call {
 private:
  friend class KernelCalls;
  std::function<int()> run;
  std::function<void(int error)> done;
  int error = 0;
};

}  // namespace anydat::nic::verbs
