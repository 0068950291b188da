#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D2-REG-4: a Provider of OpenFabrics, Debian's libdaplofa, loaded by our libdat2 and used by Debian's dtest over RDMA
# devices in the guest; and the same program over our own adapters for these devices. (The other way round, ours by their libdat2: tests/field/field.sh --registry.)
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -eq 2 ] || die "usage: provider-test.sh GUEST_FOLDER BUILD_FOLDER"
[ -e "$2/src/libdat2.so.2" ] || { say "skipped: libdat2 was not built"; exit 77; }
"$here/../field/unpack.sh" "$2/field" dapl2-utils libdapl2 || exit 77
image=$2/guest-provider.initramfs
theirs=$2/field/usr
providers=("$theirs"/lib/*/libdaplofa.so.2)
stage "$1" "$2" "$image" "$2/src/libdat2.so.2:lib" "$theirs/bin/dtest:bin" "${providers[0]}:lib"
"$here/run-guest.sh" --build "$1" --image "$image" --timeout 180 --script "$here/guest-lib.sh" --script "$here/provider.sh"
