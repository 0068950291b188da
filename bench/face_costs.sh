#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a Send and taking its completion cost under uDAPL 1.2 and under 2.0, in instructions of the library. The versions
# are two faces of one implementation, so what 2.0 costs more is its face.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

usage() {
  cat <<END
Usage: bench/${0##*/} [--build DIR]
Counts dat_ep_post_send and dat_evd_dequeue under callgrind, over shared memory, with both ends in one process.
Exit code 1 if one of them takes more than $limit instructions more under 2.0.
  --build DIR  use the programs and libraries of this build (default: build/release, brought up to date first)
END
}

limit=15
build=''
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(realpath "${2:?}") && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
need_packages valgrind
if [ -z "$build" ]; then
  build=build/release
  need_packages "${build_packages[@]}"
  mkdir -p "$build"
  quietly "$build.face_costs.log" cmake --preset release
  quietly "$build.face_costs.log" cmake --build --preset release --target dat dat2 face_costs_12 face_costs_20
fi
for variable in $(compgen -e DAT_ || true); do unset "$variable"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count VERSION FUNCTION: of each call, a median, since now and then one does what is due by time.
count() {
  DAT_WIRE=shm LD_LIBRARY_PATH=$build/src timeout 120 valgrind --tool=callgrind --collect-atstart=no \
    --toggle-collect="$2" --zero-before="$2" --dump-after="$2" --callgrind-out-file="$work/profile" \
    "$build/bin/bench/face_costs_$1" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2 && die "counting under $1 failed"; }
  awk '/^totals:/ { print $2 }' "$work"/profile.* | sort -n | awk '$1 > 0 { v[++n] = $1 } END { print v[int((n + 1) / 2)] }'
  rm -f "$work"/profile*
}

failed=0
printf '%-20s %6s %6s %8s\n' call 1.2 2.0 'more'
for call in face_post_send:dat_ep_post_send face_dequeue:dat_evd_dequeue; do
  old=$(count 12 "${call%:*}")
  new=$(count 20 "${call%:*}")
  printf '%-20s %6d %6d %8d\n' "${call#*:}" "$old" "$new" $((new - old))
  [ $((new - old)) -le $limit ] || failed=1
done
exit $failed
