#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the guest, or brings it up to date. Where that cannot be done, it says why and counts as skipped.
set -euo pipefail
here=$(dirname "$0")
. "$here/../../scripts/lib.sh"
[ $# -eq 1 ] || die "usage: image.sh GUEST_FOLDER"

[ "$(uname -m)" = x86_64 ] || { say "skipped: the guest is made for x86-64, and this is $(uname -m)"; exit 77; }
command -v apt-get >/dev/null || { say "skipped: the guest is made of Debian's packages, and there is no apt-get"; exit 77; }
for program in qemu-system-x86_64 cpio xz; do
  command -v $program >/dev/null || { say "skipped: $program is not installed (packages: ${guest_packages[*]})"; exit 77; }
done
"$here/build-guest.sh" --build "$1"
