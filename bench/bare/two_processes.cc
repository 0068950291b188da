// SPDX-License-Identifier: BSD-3-Clause
#include "bare/two_processes.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>

#include "common/error.h"
#include "common/process.h"

namespace bench {

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) tools::fail_errno("mapping shared memory");
  madvise(memory, bytes, MADV_HUGEPAGE);  // it is as well without
  std::memset(memory, 0, bytes);
  data_ = static_cast<std::byte*>(memory);
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
}

void in_two_processes(const std::vector<int>& cpus, const std::function<void()>& answer,
                      const std::function<void()>& ask) {
  const pid_t child = fork();
  if (child < 0) tools::fail_errno("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      if (!cpus.empty()) tools::pin_to_cpu(cpus[0]);
      answer();
    } catch (const std::exception&) {
      _exit(tools::kExitFailed);  // the asking side says what happened
    }
    _exit(tools::kExitOk);
  }
  int status = 0;
  try {
    if (!cpus.empty()) tools::pin_to_cpu(cpus[1]);
    ask();
  } catch (...) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    throw;
  }
  waitpid(child, &status, 0);
  if (status != 0) throw tools::Error("the other process failed");
}

void Spin::yield() {
  sched_yield();
}

}  // namespace bench
