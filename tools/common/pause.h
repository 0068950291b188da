// SPDX-License-Identifier: BSD-3-Clause
#ifndef ANYDAT_TOOLS_COMMON_PAUSE_H
#define ANYDAT_TOOLS_COMMON_PAUSE_H

namespace tools {

// For loops that look at memory until it changes: leaves the processor's resources to the other thread of its core, and
// lets it leave the loop without having run ahead in it.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tools

#endif
