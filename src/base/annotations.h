// SPDX-License-Identifier: BSD-3-Clause
// Clang's thread-safety annotations under short names; nothing under other compilers.
#pragma once

#if defined(__clang__)
#define ANYDAT_TS(x) __attribute__((x))
#else
#define ANYDAT_TS(x)
#endif

#define ANYDAT_CAPABILITY(x) ANYDAT_TS(capability(x))
#define ANYDAT_SCOPED_CAPABILITY ANYDAT_TS(scoped_lockable)
#define ANYDAT_GUARDED_BY(x) ANYDAT_TS(guarded_by(x))
#define ANYDAT_PT_GUARDED_BY(x) ANYDAT_TS(pt_guarded_by(x))
#define ANYDAT_REQUIRES(...) ANYDAT_TS(requires_capability(__VA_ARGS__))
#define ANYDAT_EXCLUDES(...) ANYDAT_TS(locks_excluded(__VA_ARGS__))
#define ANYDAT_ACQUIRE(...) ANYDAT_TS(acquire_capability(__VA_ARGS__))
#define ANYDAT_RELEASE(...) ANYDAT_TS(release_capability(__VA_ARGS__))
#define ANYDAT_TRY_ACQUIRE(...) ANYDAT_TS(try_acquire_capability(__VA_ARGS__))
#define ANYDAT_ASSERT_CAPABILITY(x) ANYDAT_TS(assert_capability(x))
#define ANYDAT_RETURN_CAPABILITY(x) ANYDAT_TS(lock_returned(x))
#define ANYDAT_NO_ANALYSIS ANYDAT_TS(no_thread_safety_analysis)
