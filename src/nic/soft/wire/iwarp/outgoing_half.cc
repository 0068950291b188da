// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/outgoing_half.h"

#include "nic/soft/adapter.h"

namespace anydat::nic::soft::iwarp {

namespace {

// In line, before the socket is asked to take it.
constexpr std::size_t kLineMax = ChunkPool::kUsual;

}  // namespace

void OutgoingHalf::push_out() {
  if (in_row_ && line_.waiting() < kLineMax) return;  // end_row() comes here once more
  const std::uint64_t pass = fabric_.passes();
  if (pass != last_pass_ || line_.waiting() >= kLineMax) {
    last_pass_ = pass;
    if (fabric_.engine().descriptor_loss().descriptors_are_ours()) line_.flush();
  } else if (!line_.idle() && !flush_comes_) {
    flush_comes_ = true;
    if (fabric_.engine().held()) {
      fabric_.schedule_turn(turn_);
    } else {
      fabric_.come_back_in_time(turn_);
    }
  }
}

void OutgoingHalf::say_to(std::uint32_t stag, std::uint64_t offset) {
  SegmentHeader header;
  header.opcode = Opcode::write;
  header.last = true;
  header.stag = stag;
  header.tagged_offset = offset;
  if (line_.append(header, std::span<const std::byte>{})) return;
  line_.give_up();
  schedule_turn();
}

std::uint64_t OutgoingHalf::share_of_pass() {
  if (const std::uint64_t pass = fabric_.passes(); pass != sent_pass_) {
    sent_pass_ = pass;
    sent_in_pass_ = 0;
  }
  const std::uint64_t most = fabric_.others_wait(turn_, false) ? budget::kSentWhileOthersWait : budget::kSentPerTurn;
  return most - std::min(most, sent_in_pass_);
}

}  // namespace anydat::nic::soft::iwarp
