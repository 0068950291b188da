#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the fuzz targets of tests/fuzz with clang, libFuzzer and the address and undefined-behaviour sanitizers, and
# runs each for a while.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]   runs all targets, or those named, for SECONDS each (default: 60)
#   scripts/fuzz.sh --keep [TARGET...]      takes what earlier runs found into tests/fuzz/corpus, as few inputs as do
#
# It begins with tests/fuzz/corpus and what earlier runs left in build/fuzz/corpus. An input that breaks something lies in
# build/fuzz/broken afterwards; give its path to the target to see it again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# An input that takes long to look at teaches little and is replayed in every test run.
readonly input_bytes_max=4096

keep=
seconds=60
case ${1:-} in
  -h | --help) sed -n 's/^# \{0,1\}//p' "$0" | sed 1d && exit 0 ;;
  --keep) keep=1 && shift ;;
  [0-9]*) seconds=$1 && shift ;;
esac
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <(sed -n 's/^set(fuzz_targets \(.*\))$/\1/p' tests/fuzz/CMakeLists.txt | tr ' ' '\n')
fi

need_packages "${build_packages[@]}" "${test_packages[@]}" clang libclang-rt-dev
mkdir -p build/fuzz
quietly build/fuzz.configure.log cmake --preset fuzz
quietly build/fuzz.build.log cmake --build --preset fuzz --target fuzzers

bad=0
for target in "${targets[@]}"; do
  program=build/fuzz/bin/fuzz/fuzz_$target
  kept=tests/fuzz/corpus/$target
  found=build/fuzz/corpus/$target
  log=build/fuzz/$target.log
  mkdir -p "$kept" "$found" build/fuzz/broken
  if [ -n "$keep" ]; then
    fewest=$(mktemp -d build/fuzz/fewest.XXXXXX)
    quietly "$log" "$program" -merge=1 -use_counters=0 -max_len=$input_bytes_max "$fewest" "$kept" "$found"
    rm -rf "$kept"
    mv "$fewest" "$kept"
    chmod 755 "$kept"
    say "$target: $(find "$kept" -type f | wc -l) inputs, $(du -bs "$kept" | cut -f1) bytes"
    continue
  fi
  if "$program" -max_total_time="$seconds" -max_len=$input_bytes_max -timeout=20 -rss_limit_mb=3000 \
    -artifact_prefix="build/fuzz/broken/$target-" "$found" "$kept" >"$log" 2>&1; then
    say "$target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") inputs in $seconds s, nothing found"
  else
    tail -n 40 "$log"
    say "$target: an input breaks it; all of the output is in $log"
    bad=1
  fi
done
exit $bad
