#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# field.sh with the programs of Debian's package dapl2-utils, bound to uDAPL 2.0: fetched and unpacked, never installed.
# Usage: tests/field/debian.sh FOLDER_TO_UNPACK_IN [--their-registry] ARGUMENT_OF_FIELD_SH...
#   --their-registry  the programs load Debian's libdat2, which loads ours as a Provider (D2-REG-4)
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
[ $# -ge 1 ] || die "usage: debian.sh FOLDER_TO_UNPACK_IN ARGUMENT_OF_FIELD_SH..."
"$here/unpack.sh" "$1" dapl2-utils libdapl2 || exit $?
folder=$(realpath "$1")
shift
registry=()
if [ "${1:-}" = --their-registry ]; then
  libraries=("$folder"/usr/lib/*/libdat2.so.2)
  # dapltest's functional tests ask about an instance as if it were a CNO, which ends the program there.
  registry=(--registry "$(dirname "${libraries[0]}")" -functions)
  shift
fi
exec "$here/field.sh" --dat 2.0 --programs "$folder/usr/bin" "${registry[@]}" "$@"
