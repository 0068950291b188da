#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tools over soft-RoCE and soft-iWARP in the guest, and what is said where an adapter cannot be opened.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -eq 2 ] || die "usage: adapters-test.sh GUEST_FOLDER BUILD_FOLDER"
image=$2/guest-adapters.initramfs
stage "$1" "$2" "$image"
"$here/run-guest.sh" --build "$1" --image "$image" --timeout 600 --script "$here/guest-lib.sh" --script "$here/adapters.sh"
