// SPDX-License-Identifier: BSD-3-Clause
// Matchers and words for DAT return codes.
#pragma once

#include <dat/udat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace anydat::test {

// The return code in words and in hexadecimal.
std::string describe(DAT_RETURN rc);

// EXPECT_THAT(dat_srq_resize(srq, 4), Succeeds());
MATCHER(Succeeds, "is DAT_SUCCESS") {
  *result_listener << "which is " << describe(arg);
  return arg == DAT_SUCCESS;
}

// An error of that type, whatever its subtype: HasType(DAT_INVALID_STATE).
MATCHER_P(HasType, type, "is an error of type " + describe(DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type))) {
  *result_listener << "which is " << describe(arg);
  return (arg & DAT_CLASS_ERROR) != 0 && DAT_GET_TYPE(arg) == static_cast<DAT_RETURN>(type);
}

// HasSubtype(DAT_INVALID_STATE_SRQ_IN_USE). Only for rules that name the subtype.
MATCHER_P(HasSubtype, subtype, "has the subtype " + std::to_string(static_cast<DAT_RETURN>(subtype))) {
  *result_listener << "which is " << describe(arg);
  return DAT_GET_SUBTYPE(arg) == static_cast<DAT_RETURN>(subtype);
}

// For code that is not an expectation: true if `rc` is an error of `type`.
inline bool is_type(DAT_RETURN rc, DAT_RETURN_TYPE type) {
  return (rc & DAT_CLASS_ERROR) != 0 && DAT_GET_TYPE(rc) == static_cast<DAT_RETURN>(type);
}

}  // namespace anydat::test
