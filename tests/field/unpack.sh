#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fetches Debian's programs and libraries of uDAPL 2.0 and unpacks them; nothing is installed. Exit code 77: not here.
# Usage: tests/field/unpack.sh FOLDER PACKAGE...
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
[ $# -ge 2 ] || die "usage: unpack.sh FOLDER PACKAGE..."
mkdir -p "$1"
cd "$1"
shift
skip() {
  say "skipped: $*"
  exit 77
}
# Tests that run at the same time share the folder.
exec 9>lock
flock -w 120 9 || skip "somebody else is at it"
for package in "$@"; do
  [ ! -e "$package.unpacked" ] || continue
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || skip "this is no Debian"
  timeout 60 apt-get -qq -o APT::Sandbox::User=root download "$package" >/dev/null 2>&1 || skip "$package cannot be fetched"
  dpkg -x "$package"_*.deb .
  : >"$package.unpacked"
done
