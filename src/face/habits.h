// SPDX-License-Identifier: BSD-3-Clause
// The one table of what programs written for other stacks take for granted: what each habit is, who has it, why it can
// be let be, and from which setting of DAT_COMPAT on it is.
#pragma once

#include <span>

#include "dapl/habits.h"

namespace anydat::face {

// DAT_COMPAT: each setting allows what the ones before it allow.
enum class Compat {
  strict,       // the standard as it is written, and what its rulings settle
  default_,     // and what does no harm: no program that keeps to the standard can tell
  openfabrics,  // and what the stack of OpenFabrics does otherwise
};

struct HabitRow {
  dapl::Habit dapl::Habits::*decision;  // null: nothing to decide, it holds in every setting
  Compat from;
  const char* habit;
  const char* who;
  const char* reason;
  const char* test;
  const char* told;  // how its line in the table of docs/porting.md begins, which scripts/check-docs.sh looks for
};

std::span<const HabitRow> habit_table();

dapl::Habits habits(Compat compat);
// By DAT_COMPAT, as it is now: an instance keeps what it was opened with.
dapl::Habits habits();

}  // namespace anydat::face
