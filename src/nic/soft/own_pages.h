// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <span>

#include "nic/soft/copy_range.h"
#include "nic/soft/page_faulter.h"
#include "nic/soft/resident_pages.h"
#include "nic/types.h"
#include "os/page_map.h"

namespace anydat::nic::soft {

class SoftAdapter;

inline bool lies_in(std::uint64_t address, std::span<const Segment> segments) {
  return std::any_of(segments.begin(), segments.end(),
                     [address](const Segment& segment) { return address - segment.address < segment.length; });
}

// Memory of this process that a connection is to copy from or to, and that may not be there.
//
// A program may register memory whose pages take long to come, or never do. A copy is made with the engine held, or a
// lock that the engine may need, so nothing is copied that has not been seen in memory: a thread of the adapter brings
// it in, and the connection goes on when it is there. Other connections notice nothing.
//
// Thread safety: looks may be made by a thread with the engine and by one with the send lock at the same time; all
// else, and destruction, with the engine held.
class OwnPages {
 public:
  using CopiedBy = ResidentPages::CopiedBy;

  // What has become of memory that was asked for.
  struct Brought {
    bool there;  // if not, it cannot be read, or written, or is nothing at all
    std::uint64_t address;
    bool to_write;
  };

  // Whose bytes lie there. One has several of these, so that no way of its bytes waits for another's page.
  class User {
   public:
    virtual void wants_pages() = 0;  // bring() is to be called soon; from any thread
    // With the engine, from nowhere in particular.
    virtual void pages_brought(const OwnPages& pages, const Brought& news) = 0;

   protected:
    ~User() = default;
  };

  OwnPages(SoftAdapter& adapter, User& user);
  ~OwnPages();
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;

  // Whether the range of these segments can be touched. If not, it is brought in, and with it what follows, as far as
  // `left` goes: of the message, from the range's first byte on. What is not there while something else is being
  // brought is to be asked for again when that has come. `now`: of Engine::ticks(), a moment ago.
  bool there(std::span<const Segment> segments, CopyRange range, std::uint64_t left, bool to_write, std::uint64_t now,
             CopiedBy by = CopiedBy::us) {
    if (segments.size() == 1 && surely_there(segments[0].address + range.offset, range.count, to_write, now)) [[likely]]
      return true;
    return all_there(segments, range, left, to_write, now, by);
  }
  bool there(std::span<const Segment> segments, CopyRange range, std::uint64_t left, bool to_write,
             CopiedBy by = CopiedBy::us);  // now
  // The same for pieces that are to be written.
  bool there(std::span<const iovec> pieces, std::uint64_t now) {
    if (pieces.size() == 1 &&
        surely_there(reinterpret_cast<std::uint64_t>(pieces[0].iov_base), pieces[0].iov_len, true, now)) [[likely]] {
      return true;
    }
    return all_there(pieces, now);
  }
  // Whether they can, as the last look has told; else there() is to be asked.
  bool surely_there(std::uint64_t address, std::uint64_t length, bool to_write, std::uint64_t now) const {
    return known_.load(std::memory_order_relaxed) == known_word(address, to_write, now) &&
           address % os::kPageBytes + length <= os::kPageBytes;
  }
  // Has brought in what is wanted. May throw std::bad_alloc.
  void bring();

 private:
  bool all_there(std::span<const iovec> pieces, std::uint64_t now);
  bool all_there(std::span<const Segment> segments, CopyRange range, std::uint64_t left, bool to_write,
                 std::uint64_t now, CopiedBy by);
  bool there(std::uint64_t address, std::uint64_t length, std::uint64_t left, bool to_write, std::uint64_t now,
             CopiedBy by);

  // Whether that range has lacked a page a moment ago, which is being brought: who asks again, as each turn of the
  // connection does, is not to have the kernel asked.
  bool lacked(std::uint64_t address, std::uint64_t length, bool to_write, std::uint64_t now) const;

  // A page, what for, and when.
  static constexpr std::uint64_t known_word(std::uint64_t address, bool to_write, std::uint64_t now) {
    return address / os::kPageBytes << 17 | (to_write ? 1 << 16 : 0) | (now >> 20 & 0xffff);
  }

  // What is wanted is written by the thread that finds nothing wanted.
  enum class State : std::uint8_t { nothing, being_written, wanted, asked };

  SoftAdapter& adapter_;
  User& user_;
  // The page that was asked for last and was there; so that messages of a page cost next to nothing.
  std::atomic<std::uint64_t> known_{0};
  std::atomic<std::uint64_t> lacked_{0};  // and the last that was not
  std::atomic<State> state_{State::nothing};
  bool wanted_to_write_ = false;  // apart from the rest of what is wanted, where it would cost a word
  struct {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t asked_at = 0;    // a moment
    std::uint32_t generation = 0;  // ResidentPages::untold_generation() by then
  } wanted_;
  PageFaulter::Request request_;
};

}  // namespace anydat::nic::soft
