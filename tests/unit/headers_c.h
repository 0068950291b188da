// SPDX-License-Identifier: BSD-3-Clause
// What headers_c.c and headers2_c.c, which are C, offer to C++ tests.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Uses the headers' macros as a C program would. Returns 0, or the line of the first thing that is not as it should be.
int headers_c_first_failure(void);
// The same for the headers of uDAPL 2.0.
int headers2_c_first_failure(void);

#ifdef __cplusplus
}
#endif
