// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/own_pages.h"

#include <algorithm>

#include "nic/soft/adapter.h"
#include "nic/soft/scatter.h"

namespace anydat::nic::soft {

namespace {

constexpr std::uint64_t kBroughtAtOnce = 4 << 20;

}  // namespace

OwnPages::OwnPages(SoftAdapter& adapter, User& user)
    : adapter_(adapter), user_(user), request_([this](bool there, std::span<const PageFaulter::Pages> untold) {
        const Brought news{there, wanted_.address, wanted_to_write_};
        ResidentPages& pages = adapter_.resident_pages();
        if (there) pages.note({wanted_.address, wanted_.length}, wanted_to_write_, wanted_.asked_at);
        // If a region has gone meanwhile, other memory may be there by now.
        if (there && wanted_.generation == pages.untold_generation()) {
          for (const PageFaulter::Pages& part : untold) {
            pages.note_untold({part.begin, part.end - part.begin}, wanted_to_write_);
          }
        }
        lacked_.store(0, std::memory_order_relaxed);
        state_.store(State::nothing, std::memory_order_release);
        user_.pages_brought(*this, news);
      }) {}

OwnPages::~OwnPages() {
  adapter_.page_faulter().cancel(request_);
}

bool OwnPages::there(std::uint64_t address, std::uint64_t length, std::uint64_t left, bool to_write, std::uint64_t now,
                     CopiedBy by) {
  if (lacked(address, length, to_write, now)) return false;
  std::uint64_t absent = 0;
  if (adapter_.resident_pages().are_resident(0, {address, length}, to_write, now, by, &absent)) {
    // What holds for the others is too old for us, or may not be used.
    if (by == CopiedBy::us) known_.store(known_word(address, to_write, now), std::memory_order_relaxed);
    return true;
  }
  lacked_.store(known_word(absent, to_write, now), std::memory_order_relaxed);
  State free = State::nothing;
  if (state_.compare_exchange_strong(free, State::being_written)) {
    wanted_to_write_ = to_write;
    wanted_ = {address, std::min(left, std::max(length, kBroughtAtOnce)), 0, 0};
    state_.store(State::wanted, std::memory_order_release);
    user_.wants_pages();
  }
  return false;
}

bool OwnPages::lacked(std::uint64_t address, std::uint64_t length, bool to_write, std::uint64_t now) const {
  if (state_.load(std::memory_order_acquire) == State::nothing) return false;
  const std::uint64_t word = lacked_.load(std::memory_order_relaxed);
  const std::uint64_t page = word >> 17;
  return word == known_word(page * os::kPageBytes, to_write, now) && page >= address / os::kPageBytes &&
         page <= (address + length - 1) / os::kPageBytes;
}

bool OwnPages::there(std::span<const Segment> segments, CopyRange range, std::uint64_t left, bool to_write,
                     CopiedBy by) {
  return there(segments, range, left, to_write, adapter_.engine().ticks(), by);
}

bool OwnPages::all_there(std::span<const Segment> segments, CopyRange range, std::uint64_t left, bool to_write,
                         std::uint64_t now, CopiedBy by) {
  return for_each_piece(segments, range.offset, range.count, [&](const Piece& piece) {
    if (!there(piece.address, piece.count, std::min(left, piece.room), to_write, now, by)) return false;
    left -= piece.count;
    return true;
  });
}

bool OwnPages::all_there(std::span<const iovec> pieces, std::uint64_t now) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const iovec& piece) {
    return there(reinterpret_cast<std::uint64_t>(piece.iov_base), piece.iov_len, piece.iov_len, true, now,
                 CopiedBy::us);
  });
}

void OwnPages::bring() {
  if (state_.load(std::memory_order_acquire) != State::wanted) return;
  state_.store(State::asked, std::memory_order_relaxed);
  wanted_.generation = adapter_.resident_pages().untold_generation();
  wanted_.asked_at = static_cast<std::uint32_t>(moment_of(adapter_.engine().ticks()));
  adapter_.page_faulter().ask(request_, wanted_.address, wanted_.length, wanted_to_write_);
}

}  // namespace anydat::nic::soft
