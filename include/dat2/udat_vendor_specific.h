/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The place the standard keeps for a vendor's own additions to <dat2/udat.h>. There are none: the extensions of this
 * library stand apart, in <anydat/anydat.h>.
 */
#ifndef UDAT2_VENDOR_SPECIFIC_H
#define UDAT2_VENDOR_SPECIFIC_H

#endif
