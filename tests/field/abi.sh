#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The table of the ABI of uDAPL 2.0, tests/data/abi2-x86_64.tsv, is what a compiler says of OpenFabrics' own headers: they are
# fetched as Debian has them, unpacked, measured anew (scripts/measure-abi.sh) and compared. That include/dat2 is what the table
# says, the unit tests show on every machine. Exit code 77: not here.
# Usage: tests/field/abi.sh FOLDER_TO_UNPACK_IN [TABLE]
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
[ $# -eq 1 ] || [ $# -eq 2 ] || die "usage: abi.sh FOLDER_TO_UNPACK_IN [TABLE]"
table=${2:-$here/../data/abi2-x86_64.tsv}
skip() {
  say "skipped: $*"
  exit 77
}
[ "$(uname -m)" = x86_64 ] || skip "the table is that of x86-64"
for tool in gcc gdb nm; do command -v "$tool" >/dev/null || skip "there is no $tool"; done
gdb -batch -nx -q -ex 'python print(1)' >/dev/null 2>&1 || skip "gdb has no Python"
"$here/unpack.sh" "$1" libdapl2 libdapl-dev || exit $?
folder=$(realpath "$1")
libraries=("$folder"/usr/lib/*/libdat2.so.2)
measured=$(mktemp)
trap 'rm -f "$measured"' EXIT
"$here/../../scripts/measure-abi.sh" "$folder/usr/include" "${libraries[0]}" >"$measured"
facts=$(grep -vc '^#' "$measured" || true)
[ "$facts" -gt 1000 ] || die "only $facts facts were measured"
diff -u "$table" "$measured" || die "the table is not what the headers of libdapl-dev say"
say "$facts facts, measured anew: all as in the table"
