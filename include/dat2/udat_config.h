/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a program built with these headers asks of dat_ia_open().
 */
#ifndef UDAT2_CONFIG_H
#define UDAT2_CONFIG_H

/* The version of the API that these headers declare (rule D2-HDR-2). */
#define DAT_VERSION_MAJOR 2
#define DAT_VERSION_MINOR 0

/* Whether the program wants a Provider that several threads may call. A program that does defines this as DAT_TRUE
 * before it includes <dat2/udat.h> (ruling A3). Only registry entries with equal thread safety match. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

/* The headers declare dat_extension_op() and the names that extensions begin from. They always do; the name is there
 * because programs ask for it. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS 1
#endif

#endif
