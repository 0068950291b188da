// SPDX-License-Identifier: BSD-3-Clause
// What dat_ia_query answers.
#pragma once

#include "dapl/ia_description.h"
#include "face/objects.h"
#include "face/versions.h"

namespace anydat::face {

// The two structures of dat_ia_query; where the mask of the first stands in the call.
struct IaQuery {
  DAT_IA_ATTR_MASK attr_mask;
  DAT_IA_ATTR* attr;
  DAT_PROVIDER_ATTR_MASK provider_mask;
  DAT_PROVIDER_ATTR* provider;
  unsigned place;

  dapl::Error check(const char* call, const dapl::Habit& unknown_bits) const;
  void answer(const dapl::Description& from) const;  // Requires: checked
};

}  // namespace anydat::face
