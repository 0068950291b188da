// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nic/region_table.h"
#include "os/lock.h"
#include "os/thread.h"

namespace anydat::nic::soft::shm {

class Fabric;
class Link;

// A place in a sealed file of the program's, and a descriptor of the program's by which the file can be passed on.
struct ProgramFile {
  int descriptor;
  dev_t device;
  ino_t inode;
  std::uint64_t offset;
};

// Finds the files behind regions that peers ask for. The kernel may take tens of milliseconds to tell, so it is asked
// by a thread that does not hold the engine, and lives as long as there is something to find; the answer is remembered
// until the region goes.
//
// Thread safety: called with the engine held, but for its destructor, which must not be; jobs_ goes between the threads
// by lock_.
class FileFinder {
 public:
  explicit FileFinder(Fabric& fabric) : fabric_(fabric) {}
  ~FileFinder();

  // The link is told by show_file(), now or later, or never if there is no such file.
  void find(std::uint32_t key, const Region& region, const std::shared_ptr<Link>& link);
  void forget(std::uint32_t key) { answers_.erase(key); }
  void close();  // no link is told anything any longer

 private:
  struct Job {
    std::uint32_t key;
    std::uint64_t address;
    std::uint64_t length;
  };
  struct Answer {
    bool known = false;
    std::optional<ProgramFile> file;
    std::vector<std::weak_ptr<Link>> askers;  // until it is known
  };

  void submit(const Job& job);
  void work();
  void found(const Job& job, const std::optional<ProgramFile>& file);

  Fabric& fabric_;
  std::unordered_map<std::uint32_t, Answer> answers_;
  os::Thread thread_;
  bool closed_ = false;

  os::Mutex lock_;
  std::deque<Job> jobs_ ANYDAT_GUARDED_BY(lock_);
  bool works_ ANYDAT_GUARDED_BY(lock_) = false;
};

}  // namespace anydat::nic::soft::shm
