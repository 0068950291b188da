#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the calls of the data path cost under uDAPL 1.2 and under 2.0, in instructions of the library. The versions are two
# faces of one implementation, so what 2.0 costs more is its face.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. bench/by_time.sh

limit=15

usage() {
  cat <<END
Usage: bench/${0##*/} [--build DIR]
Counts posts and taking a completion under callgrind, over shared memory, with both ends in one process: the instructions of
the calling thread alone, without what is done by time, of all calls of a kind one quarter from below.
Exit code 1 if one of them takes more than $limit instructions more under 2.0.
  --build DIR  use the programs and libraries of this build (default: build/release, brought up to date first)
END
}

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

calls=(post_send post_send_two post_recv rdma_write rdma_read srq_post_recv dequeue)
# Of these options one takes a pattern, and is taken once; the others are the reverse.
watched=('--toggle-collect=face_*')
for call in "${calls[@]}"; do watched+=("--zero-before=face_$call" "--dump-after=face_$call"); done

# count VERSION: lines "CALL INSTRUCTIONS", sorted.
count() {
  mkdir "$work/profiles"
  DAT_WIRE=shm LD_LIBRARY_PATH=$build/src timeout 300 valgrind --tool=callgrind --separate-threads=yes \
    --collect-atstart=no "${watched[@]}" --callgrind-out-file="$work/profiles/profile" \
    "$build/bin/bench/face_costs_$1" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2 && die "counting under $1 failed"; }
  # The first thread's. A line after "calls=" repeats the costs of a callee.
  find "$work/profiles" -name 'profile.*-01' -print0 | xargs -0 awk -v done_by_time="$by_time" '
    function named(text, names,   id, at) {
      at = index(text, " ")
      id = at ? substr(text, 1, at - 1) : text
      if (at) names[id] = substr(text, at + 1)
      return names[id]
    }
    function finish() { if (call != "" && ours > 0) print call, ours; call = ""; ours = 0; skip = 0 }
    FNR == 1 { finish(); delete objects; delete functions }
    /^desc: Trigger: --dump-after=face_/ { call = substr($0, length("desc: Trigger: --dump-after=face_") + 1) }
    /^ob=/ { object = named(substr($0, 4), objects); next }
    /^cob=/ { named(substr($0, 5), objects); next }
    /^fn=/ { by_time = named(substr($0, 4), functions) ~ done_by_time; next }
    /^cfn=/ { named(substr($0, 5), functions); next }
    /^calls=/ { skip = 1; next }
    /^[-+*0-9]/ { if (skip) { skip = 0; next } if (!by_time && object ~ /\/libdat2?\.so/) ours += $2 }
    END { finish() }' | sort -k1,1 -k2,2n |
    awk 'function finish() { if (n) print last, line[int((n + 3) / 4)]; n = 0 }
         $1 != last { finish(); last = $1 } { line[++n] = $2 } END { finish() }'
  rm -rf "$work/profiles"
}

# What is in the way of one run is seldom in that of all: of several, the least. A version that costs much less than the
# other has been counted better.
undisturbed() { sort -k1,1 -k2,2n "$work/$1".* | awk '$1 != last { print; last = $1 }'; }
compare() {
  join <(undisturbed 12) <(undisturbed 20) | awk -v limit=$limit -v calls=${#calls[@]} '
    BEGIN { printf "%-14s %6s %6s %6s\n", "call", "1.2", "2.0", "more" }
    { printf "%-14s %6d %6d %+6d%s\n", $1, $2, $3, $3 - $2, ($3 - $2 > limit ? "  TOO MANY" : ""); bad += ($3 - $2 > limit) }
    END { exit (bad > 0 || NR != calls) }'
}
for round in 1 2 3 4 5; do
  count 12 >"$work/12.$round"
  count 20 >"$work/20.$round"
  if [ "$round" -ge 2 ] && compare >"$work/table" && ! grep -qE -- "-[0-9]{2,}$" "$work/table"; then break; fi
done
compare
