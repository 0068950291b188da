#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and tests everything, from a fresh checkout, in one command. Exit code 0 only if all parts are well.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

usage() {
  cat <<END
Usage: scripts/test.sh [--quick | PART...]
Installs what is missing (Debian's packages), builds in build/, and runs these parts, or only those that are named:
  release   the whole of it, optimised, with all tests
  asan      the same under the address and undefined-behaviour sanitizers
  tsan      the same under the thread sanitizer
  clang     the library under clang, with its thread-safety analysis as errors
  checks    what the rooms of the library include; whether docs know its timers, locks and files; whether tests name every
            rule of the standard; whether a call of the hot path needs more instructions than bench/instructions.txt says
Only if it is named, since it takes more than an hour (for the night):
  modes     all conformance and process tests of the part release in each mode of tests/modes/modes.sh
--quick is the part release alone.
ANYDAT_TEST_JOBS: how many tests run at once (default: the number of processors).
END
}

all_parts=(release asan tsan clang checks)
parts=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage && exit 0 ;;
    --quick) parts+=(release) ;;
    release | asan | tsan | clang | checks | modes) parts+=("$argument") ;;
    *) usage >&2 && exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=("${all_parts[@]}")
jobs=${ANYDAT_TEST_JOBS:-$(nproc)}
# A machine that runs many processes on few processors needs patience; a test that passes does not use it up.
export ANYDAT_TEST_TIMEOUT_SCALE=${ANYDAT_TEST_TIMEOUT_SCALE:-2}

# How long the tests of one part may take, in minutes: several times what they need. A part that hangs fails with the
# names of what has not ended, instead of taking the whole run with it.
test_limit_minutes() {
  case $1 in
    release) echo 35 ;;
    *) echo 18 ;;
  esac
}

# build_and_test PRESET: configures, builds, and runs all tests. The last lines of ctest are shown, or all of a failure.
build_and_test() {
  local log=build/$1.test.log limit
  limit=$(test_limit_minutes "$1")
  mkdir -p build
  quietly "build/$1.configure.log" cmake --preset "$1"
  quietly "build/$1.build.log" cmake --build --preset "$1"
  # A test that fails is tried twice more, so that one bad moment of the machine does not hide all other results; that it
  # needed that is shown, since it is a fault of the product until shown otherwise.
  if timeout --kill-after=30 "${limit}m" ctest --preset "$1" -j "$jobs" --repeat until-pass:3 >"$log" 2>&1; then
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \(.*\) \.*\*\*\*\(Failed\|Timeout\|Exception\).*/needed another try: \1/p' "$log"
    sed -n '/tests passed,/,$p' "$log"
    return 0
  fi
  if ! grep -q '^Total Test time' "$log"; then
    say "The tests were stopped after $limit minutes. These had begun and not ended:"
    awk '/^ *Start +[0-9]+: /{name[$2]=$3} /Test +#[0-9]+: /{sub(/^.*Test +#/, ""); sub(/:.*/, ":"); delete name[$0]}
         END{for (n in name) print "  " name[n]}' "$log"
  fi
  grep -v ' Passed ' "$log" | tail -n 400
  say "All of it is in $log."
  return 1
}

# test_modes: tells what came of each mode, one after the other; all that each said is in a file.
test_modes() {
  local mode code log bad=0
  mkdir -p build
  quietly build/release.configure.log cmake --preset release
  quietly build/release.build.log cmake --build --preset release --target conformance_tests process_tests confine
  for mode in usual namespaces refused refused-process_vm refused-membarrier refused-userfaultfd refused-pidfd few-files \
    locked-memory memory-group no-files; do
    log=build/modes.$mode.log
    code=0
    ANYDAT_TEST_JOBS=$jobs tests/modes/modes.sh --all build/release/bin/tests "$mode" >"$log" 2>&1 || code=$?
    case $code in
      0) cat "$log" ;;
      77) say "$(cat "$log"): skipped" ;;
      *) tail -n 60 "$log" && say "All of it is in $log." && bad=1 ;;
    esac
  done
  return $bad
}

run_part() {
  case $1 in
    modes) test_modes ;;
    release | asan | tsan) build_and_test "$1" ;;
    clang)
      # The analysis works on declarations, so objects suffice.
      mkdir -p build
      quietly build/clang.configure.log cmake --preset clang -DANYDAT_TESTS=OFF -DANYDAT_BENCH=OFF
      quietly build/clang.build.log cmake --build --preset clang --target anydat_core anydat_face12 anydat_face20 anydat_verbs
      ;;
    checks)
      scripts/check-arrows.sh || return 1
      scripts/check-docs.sh || return 1
      # It lists the rules that no test names, and fails if there are any.
      scripts/rules.sh || return 1
      bench/instructions.sh || return 1
      ;;
  esac
}

need_packages "${build_packages[@]}" "${verbs_packages[@]}" "${test_packages[@]}"
# Without them the tests in the guest and between network namespaces are skipped and say so.
if [[ " ${parts[*]} " == *" release "* ]]; then need_packages "${guest_packages[@]}" "${hosts_packages[@]}" || true; fi
if [[ " ${parts[*]} " == *" clang "* ]]; then need_packages clang; fi

results=()
failed=0
for part in "${parts[@]}"; do
  say "== $part"
  start=$SECONDS
  # In a shell of its own, because 'quietly' ends the shell it fails in.
  if (run_part "$part"); then
    results+=("$part: passed in $((SECONDS - start)) s")
  else
    results+=("$part: FAILED after $((SECONDS - start)) s")
    failed=1
  fi
done
say "== parts that ran"
printf '%s\n' "${results[@]}"
exit $failed
