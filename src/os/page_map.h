// SPDX-License-Identifier: BSD-3-Clause
// Which pages of a process are in memory.
//
// Touching a page that is not may take for ever: its file may be of a server that does not answer, or the program may
// have promised to bring it (userfaultfd) and does not. Nothing tells beforehand how long a page will take, but the
// kernel tells which ones are there.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "os/unique_fd.h"

namespace anydat::os {

class PageMap {
 public:
  // Of the process that has this thread; 0: of the calling one. 0, or the error: EACCES, EPERM and ENOENT if the kernel
  // does not tell. Of the calling one it always does, if only by mincore(2) where /proc is not there, or hides a
  // process that has dropped privileges from itself. Then a page that its file has in memory is there, though it may
  // not be mapped yet, and so is any page of a file that the process neither owns nor may write; and nothing is said of
  // what userfaultfd keeps from being written.
  int open(pid_t thread);

  // Addresses of that process: of the pages that the range touches, how far they are in memory, from the first on and
  // without a gap. The end of the last such page; the beginning of the first page if that is not there, though it may
  // be only a moment away; nothing if the kernel does not tell. `to_write`: a page that userfaultfd keeps from being
  // written is not there; its file system may do so still. From any thread.
  std::optional<std::uint64_t> resident_until(std::uint64_t address, std::uint64_t length, bool to_write) const;
  // From now on by the older and slower way, which kernels before 6.7 have alone. They are found out without this.
  void look_by_entries() { scans_.store(false); }
  // From now on by mincore(2). Of the calling process alone.
  void look_by_residency() {
    by_residency_ = true;
    file_.reset();
  }

 private:
  std::optional<std::uint64_t> scan(std::uint64_t first, std::uint64_t end, bool to_write) const;
  std::optional<std::uint64_t> read_entries(std::uint64_t first, std::uint64_t end, bool to_write) const;

  UniqueFd file_;
  bool by_residency_ = false;
  mutable std::atomic<bool> scans_{true};  // until the kernel turns out to be too old
};

inline constexpr std::uint64_t kPageBytes = 4096;  // the smallest that there are

// Brings the pages of this process into memory, for reading or for writing; may take for ever. False: what is there
// cannot be read, or written, or is nothing at all. `untold`: it is perhaps memory, as that of a device, which PageMap
// calls absent all the same.
bool fault_in(std::uint64_t address, std::uint64_t length, bool to_write, bool* untold = nullptr);
// The same by accesses that change no byte, for kernels before 5.14, which do not know the advice.
bool fault_in_by_access(std::uint64_t address, std::uint64_t length, bool to_write);

}  // namespace anydat::os
