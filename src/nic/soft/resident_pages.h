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
// moment ago, or are now. Looking costs as much as copying a few pages, so what has been seen is remembered for about a
// millisecond; pages do not go that soon after they have been used, unless their program has them go.
//
// Thread safety: from any thread.
class ResidentPages {
 public:
  ~ResidentPages() { delete known_.load(); }

  // A range of addresses, and how many bytes of it and what lies behind are likely to be asked for next.
  struct Range {
    std::uint64_t address;
    std::uint64_t length;
    std::uint64_t soon;
  };
  // False: some of its pages are not there, or are this process's own and may not be read, or written. `thread` is one
  // of the process (os::PageMap), always the same. Where the kernel does not tell, all are taken to be there; and so
  // they are while the system has no room for the descriptors that it takes, which is tried again. `now`: of any clock
  // that takes some millions of steps for a millisecond, always the same.
  bool hold(pid_t thread, const Range& range, bool to_write, std::uint64_t now);

 private:
  static constexpr std::size_t kRemembered = 2048;  // 8 MiB
  struct Known {
    os::PageMap map;
    os::AccessMap access;  // of this process
    bool told = false;     // what is there
    // Each one page, what it may be used for, and when; looked for by the page alone. 0: none.
    std::array<std::atomic<std::uint64_t>, kRemembered> pages{};
  };
  Known* known(pid_t thread, std::uint64_t now);

  std::atomic<Known*> known_{nullptr};  // made when first needed
  std::atomic<std::uint64_t> open_again_{0};
};

}  // namespace anydat::nic::soft
