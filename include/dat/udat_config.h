/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a program built with these headers asks of dat_ia_open().
 */
#ifndef UDAT_CONFIG_H
#define UDAT_CONFIG_H

/* The version of the API that these headers declare (rule HDR-2). */
#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/* Whether the program wants a Provider that several threads may call. A program that does defines this as DAT_TRUE
 * before it includes <dat/udat.h> (ruling A3). Only registry entries with equal thread safety match. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif
