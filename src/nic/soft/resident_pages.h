// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "nic/moment.h"
#include "os/lock.h"
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
  // Who is to touch the pages. If one has gone since it was seen, the kernel waits for it or answers with an error,
  // while an instruction of ours waits or faults. So what has been seen is relied on for some milliseconds where the
  // kernel copies, and for about one where we do; for short messages longer, since looking would cost more than they
  // do. Pages that may not be used are left to an instruction of ours all the same: it faults like one of the program's
  // own, whose handler may be about to mend that.
  enum class CopiedBy : std::uint8_t { us, us_in_short, kernel };
  // False: some of its pages are not there, or are this process's own and may not be read, or written. `thread` is one
  // of the process (os::PageMap), always the same. Where the kernel does not tell, all are taken to be there; and so
  // they are while the system has no room for the descriptors that it takes, which is tried again. `now`: of any clock
  // that takes one to some millions of steps for a millisecond, always the same.
  // `absent`: where one of those is told of.
  bool are_resident(pid_t thread, const Range& range, bool to_write, std::uint64_t now, CopiedBy by = CopiedBy::us,
                    std::uint64_t* absent = nullptr);

  // They have been there since, as who has brought them in one after the other knows: also where the kernel calls them
  // absent, as it does those of a device. `since`: the moment at which the first may have come.
  void note(const Range& range, bool to_write, std::uint64_t since);

  // Memory that a thread has been in, of a kind that may be one of which the kernel tells nothing, as that of a device:
  // if it calls it absent, it does so for ever. So that is taken to be there from now on, as long as it may be used.
  void note_untold(const Range& range, bool to_write);
  // A region has gone, and other memory may come to be in its place.
  void forget_untold();
  std::uint32_t untold_generation() const { return untold_generation_.load(); }  // how often it has been forgotten

  // Memory that seen() has answered for, so that what is near costs next to nothing. Each for one thread at a time, and
  // for reading or for writing.
  struct Stretch {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint32_t moment = ~std::uint32_t{0};
    bool holds(const Range& range, std::uint64_t now) const {
      const std::uint64_t offset = range.address - address;
      return moment == now && offset <= length && range.length <= length - offset;
    }
  };
  // Whether they have been seen some milliseconds before `moment` (nic/moment.h). For short messages: without a system
  // call, so false says nothing, and are_resident() is to be asked. Requires: `thread` has been 0 always.
  bool seen(const Range& range, bool to_write, std::uint64_t moment, Stretch& stretch) const {
    if (stretch.holds(range, moment)) [[likely]]
      return true;
    return seen_around(range, to_write, moment, stretch);
  }

 private:
  // Pages are remembered by runs of them, which reach farther than a program has bytes under way to one peer.
  static constexpr std::uint64_t kPagesOfRun = 16;
  static constexpr std::uint64_t kRuns = 2048;
  static constexpr std::uint64_t kUnitsForUs = 1;  // so long after it has been seen, and for the rest of that unit
  static constexpr std::uint64_t kUnitsForOthers = 15;

  // A word for all runs that have the same place: which one it is, which of its pages have been seen, and when. That
  // comes round after a minute or more: a run that has not been used since may pass for one that has.
  static constexpr int kPagesShift = kMomentBits;
  static constexpr int kRunShift = kPagesShift + kPagesOfRun;
  static constexpr std::uint64_t kAllPages = (std::uint64_t{1} << kPagesOfRun) - 1;
  static constexpr std::uint64_t word_of(std::uint64_t run, std::uint64_t pages, std::uint64_t when) {
    return run / kRuns << kRunShift | pages << kPagesShift | when;
  }

  struct Known {
    os::PageMap map;
    os::AccessMap access;  // of this process
    bool told = false;     // what is there
    // For reading, and for writing.
    std::array<std::array<std::atomic<std::uint64_t>, kRuns>, 2> words{};

    // Arenas and regions lie at multiples of large powers of two, and are used at like offsets: those are kept apart.
    static constexpr std::size_t place_of(std::uint64_t run) { return (run ^ run / kRuns) % kRuns; }
    const std::atomic<std::uint64_t>& word(std::uint64_t run, bool to_write) const {
      return words[to_write ? 1 : 0][place_of(run)];
    }
    std::uint64_t seen_until(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time,
                             std::uint64_t units) const;
    void note(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time, std::uint64_t units);
  };
  bool all_but_untold(Known& known, std::uint64_t at, std::uint64_t end, bool to_write);
  std::uint64_t untold_until(std::uint64_t address);  // itself: it is none of that
  Known* known(pid_t thread, std::uint64_t now);
  bool seen_around(const Range& range, bool to_write, std::uint64_t moment, Stretch& stretch) const;

  std::atomic<Known*> known_{nullptr};  // made when first needed
  std::atomic<std::uint64_t> open_again_{0};
  std::atomic<std::uint32_t> untold_generation_{0};
  std::atomic<bool> any_untold_{false};
  os::SpinLock untold_lock_;
  std::vector<Range> untold_ ANYDAT_GUARDED_BY(untold_lock_);  // none touches another
};

}  // namespace anydat::nic::soft
