// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace anydat {

inline constexpr unsigned kVersionMajor = 0;
inline constexpr unsigned kVersionMinor = 1;

}  // namespace anydat
