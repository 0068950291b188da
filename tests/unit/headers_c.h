// SPDX-License-Identifier: BSD-3-Clause
// What headers_c.c, which is C, offers to a C++ test.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Uses the headers' macros as a C program would. Returns 0, or the line of the first thing that is not as it should be.
int headers_c_first_failure(void);

#ifdef __cplusplus
}
#endif
