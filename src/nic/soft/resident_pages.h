// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "os/memory_map.h"
#include "os/page_map.h"

namespace anydat::nic::soft {

// Which pages of a process can be touched without waiting, as far as it is known: they have been seen in memory a
// moment ago, or are now. Looking costs as much as copying a few pages, so what has been seen is remembered for a
// moment, and what lies behind is looked at with it, since there is likely to be more of the program's buffers;
// pages do not go that soon after they have been used, unless their program has them go.
//
// Thread safety: from any thread.
class ResidentPages {
 public:
  ~ResidentPages() { delete known_.load(); }

  struct Range {
    std::uint64_t address;
    std::uint64_t length;
  };
  // Who is to touch the pages. The kernel waits for a page that has gone meanwhile, or says that it may not be used; an
  // instruction of ours would end the process. So what has been seen counts for some milliseconds with the one, and for
  // about one with the other.
  enum class CopiedBy : std::uint8_t { us, kernel };
  // False: some of its pages are not there, or are this process's own and may not be read, or written. `thread` is one
  // of the process (os::PageMap), always the same. Where the kernel does not tell, all are taken to be there; and so
  // they are while the system has no room for the descriptors that it takes, which is tried again. `now`: of any clock
  // that takes one to some millions of steps for a millisecond, always the same.
  bool hold(pid_t thread, const Range& range, bool to_write, std::uint64_t now, CopiedBy by = CopiedBy::us);

 private:
  // A message of many pages is looked up by runs of them, which reach farther than a program has bytes under way to one
  // peer; what is not of a whole run by its pages.
  static constexpr std::uint64_t kPagesOfRun = 16;
  static constexpr std::size_t kRuns = 2048;
  static constexpr std::size_t kPages = 2048;
  struct Known {
    os::PageMap map;
    os::AccessMap access;  // of this process
    bool told = false;     // what is there
    // Each one run or page, what it may be used for, and when; looked for by its number alone. 0: none.
    std::array<std::atomic<std::uint64_t>, kRuns> runs{};
    std::array<std::atomic<std::uint64_t>, kPages> pages{};

    std::uint64_t seen_until(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time,
                             std::uint64_t units) const;
    void note(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time);
  };
  Known* known(pid_t thread, std::uint64_t now);

  std::atomic<Known*> known_{nullptr};  // made when first needed
  std::atomic<std::uint64_t> open_again_{0};
};

}  // namespace anydat::nic::soft
