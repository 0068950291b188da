// SPDX-License-Identifier: BSD-3-Clause
#include "support/progress.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "support/patience.h"

namespace anydat::test {
namespace {

// A message may need some passes of either side, one after the other; what an adapter looks at by time only it looks at
// every 50 us, and some of its timers take a millisecond.
constexpr int kPassesOfEach = 100;

std::chrono::microseconds shortest_settling() {
  return quiet_time() / 10;
}

std::mutex open_instances_lock;
// A child of fork opens instances, too, whatever the other threads were at.
[[maybe_unused]] const int free_in_child = ::pthread_atfork(
    [] { open_instances_lock.lock(); }, [] { open_instances_lock.unlock(); }, [] { open_instances_lock.unlock(); });
std::map<DAT_IA_HANDLE, bool>& open_instances() {
  static std::map<DAT_IA_HANDLE, bool> instances;  // whether they are polled
  return instances;
}
std::atomic<int> bystanders{0};

// An empty event dispatcher of each instance: looking there for an event makes one pass of its adapter and takes
// nothing from anybody.
class Passes {
 public:
  bool begin(const std::map<DAT_IA_HANDLE, bool>& instances) {
    for (const auto& [ia, polled] : instances) {
      DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
      if (!polled || dat_evd_create(ia, 1, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd) != DAT_SUCCESS) return false;
      evds_.push_back(evd);
    }
    return !evds_.empty();
  }
  ~Passes() {
    for (const DAT_EVD_HANDLE evd : evds_) dat_evd_free(evd);
  }
  void make() const {
    for (const DAT_EVD_HANDLE evd : evds_) {
      DAT_EVENT event;
      DAT_COUNT more = 0;
      dat_evd_wait(evd, 0, 1, &event, &more);
    }
  }

 private:
  std::vector<DAT_EVD_HANDLE> evds_;
};

}  // namespace

void note_open(DAT_IA_HANDLE ia, bool polled) {
  const std::lock_guard guard(open_instances_lock);
  open_instances()[ia] = polled;
}

bool note_closed(DAT_IA_HANDLE ia) {
  const std::lock_guard guard(open_instances_lock);
  const auto node = open_instances().extract(ia);
  return !node.empty() && node.mapped();
}

Bystander::Bystander() {
  ++bystanders;
}

Bystander::~Bystander() {
  --bystanders;
}

bool settle() {
  if (bystanders > 0) return false;
  const std::lock_guard guard(open_instances_lock);  // none of them is closed meanwhile
  Passes passes;
  if (!passes.begin(open_instances())) return false;
  const auto end = std::chrono::steady_clock::now() + shortest_settling();
  for (int i = 0; i < kPassesOfEach || std::chrono::steady_clock::now() < end; ++i) passes.make();
  return true;
}

}  // namespace anydat::test
