// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/reading_turn.h"

namespace anydat::nic::soft::iwarp {

void ReadingTurn::begin() {
  more_to_read_ = false;
  begin_with_stash();
  asked_for_others_ = false;
  round_ = fabric_.round();
}

void ReadingTurn::begin_with_stash() {
  over_ = message_over_ = had_message_ = in_doubt_ = false;
}

void ReadingTurn::want() {
  more_to_read_ = true;
  fabric_.schedule_turn(*this);
}

void ReadingTurn::want_behind_others() {
  more_to_read_ = true;
  if (std::exchange(kept_, false)) {
    round_ = 0;
    fabric_.keep_turn(*this);
  } else {
    fabric_.come_back_to_read(*this);
  }
}

}  // namespace anydat::nic::soft::iwarp
