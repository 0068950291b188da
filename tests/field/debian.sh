#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# field.sh with the programs of Debian's package dapl2-utils, bound to uDAPL 2.0: fetched and unpacked, never installed.
# Usage: tests/field/debian.sh FOLDER_TO_UNPACK_IN ARGUMENT_OF_FIELD_SH...
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
[ $# -ge 1 ] || die "usage: debian.sh FOLDER_TO_UNPACK_IN ARGUMENT_OF_FIELD_SH..."
mkdir -p "$1"
folder=$(realpath "$1")
shift
skip() {
  say "skipped: $*"
  exit 77
}

if [ ! -x "$folder/usr/bin/dtest" ]; then
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || skip "this is no Debian"
  (cd "$folder" && timeout 60 apt-get -qq download dapl2-utils >/dev/null 2>&1) || skip "dapl2-utils cannot be fetched"
  dpkg -x "$folder"/dapl2-utils_*.deb "$folder"
fi
exec "$here/field.sh" --dat 2.0 --programs "$folder/usr/bin" "$@"
