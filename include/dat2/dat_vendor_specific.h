/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The place the standard keeps for a vendor's own additions to <dat2/dat.h>. There are none: the extensions of this
 * library stand apart, in <anydat/anydat.h>.
 */
#ifndef DAT2_VENDOR_SPECIFIC_H
#define DAT2_VENDOR_SPECIFIC_H

#endif
