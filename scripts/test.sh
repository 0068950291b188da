#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and tests everything, from a fresh checkout, in one command. Exit code 0 only if all parts are well.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

usage() {
  cat <<END
Usage: scripts/test.sh [all | night | PART...]
Installs what is missing (Debian's packages), builds in build/, and runs these parts. Without an argument: first.
  first     what a newcomer wants to see: the library, optimised, with its tests over shared memory and over TCP, and
            programs of others once
  release   all tests of the optimised build: also of uDAPL 2.0, where the kernel grants less, between network
            namespaces, on RDMA devices in a guest, of packages; and whether for some rule of the standard all were skipped
  asan      nearly the same under the address and undefined-behaviour sanitizers
  tsan      the same under the thread sanitizer (of clang, which takes half of GCC's time)
  clang     the library under clang, with its thread-safety analysis as errors
  checks    what the rooms of the library include, and which of them call the system; whether comments name what acts;
            whether functions and files are short; whether docs know its timers, locks and files; whether tests name
            every rule of the standard; which of eight mutants of tests/mutants the tests see (other ones with each commit; it only tells);
            whether models of what no test can show hold in all interleavings; whether a call of the hot
            path needs more instructions than bench/instructions.txt says, or many more under uDAPL 2.0 than under 1.2
  modes     all conformance and process tests in each mode of tests/modes/modes.sh
  field     Debian's programs of uDAPL 2.0, each case 20 times in a row over shared memory and over TCP; with
            ANYDAT_FIELD_PROGRAMS, a folder that has dtest and dapltest of uDAPL 1.2, those as well
  repeat    all tests but those in the guest 20 times in a row, with eight processes beside them that only compute; those that
            ANYDAT_CHANGED names (a pattern of ctest's) 100 times
  mutants   all mutants of tests/mutants (scripts/mutate.sh)
  fuzz      each fuzz target for half an hour (scripts/fuzz.sh)
all stands for release, clang, checks, asan and tsan; night for what takes longer than an hour: modes, field, repeat, mutants
and fuzz.
ANYDAT_TEST_JOBS: how many tests run at once (default: half as many again as there are processors).
END
}

parts=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage && exit 0 ;;
    all) parts+=(release clang checks asan tsan) ;;
    night) parts+=(modes field repeat mutants fuzz) ;;
    first | release | asan | tsan | clang | checks | modes | field | repeat | mutants | fuzz) parts+=("$argument") ;;
    *) usage >&2 && exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=(first)
# Most tests wait more than they compute.
jobs=${ANYDAT_TEST_JOBS:-$(($(nproc) * 3 / 2))}
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

# telling_progress LOG PATTERN COMMAND...: runs a command with its output in a file, and says every 20 seconds how far it is,
# by the last "N/M" of the file that PATTERN finds.
telling_progress() {
  local log=$1 pattern=$2 command rc=0 now last=''
  shift 2
  "$@" >"$log" 2>&1 &
  command=$!
  while kill -0 $command 2>/dev/null; do
    for _ in {1..40}; do kill -0 $command 2>/dev/null && sleep 0.5; done  # it is looked at, not waited for
    now=$(grep -oE "$pattern" "$log" | tail -n 1 | grep -oE '[0-9]+/[0-9]+' || true)
    [ -z "$now" ] || [ "$now" = "$last" ] || say "  $now"
    last=$now
  done
  wait $command || rc=$?
  return $rc
}

# build PRESET TARGET...
build() {
  local preset=$1 rc=0
  shift
  mkdir -p build
  quietly "build/$preset.configure.log" cmake --preset "$preset" -DANYDAT_TESTS_APART=OFF
  say "building"
  telling_progress "build/$preset.build.log" '^\[[0-9]+/[0-9]+\]' cmake --build --preset "$preset" ${1+--target "$@"} || rc=$?
  [ $rc -eq 0 ] || { tail -n 40 "build/$preset.build.log" >&2 && die "building failed; all of it is in build/$preset.build.log"; }
}

# build_and_test PRESET [OPTION OF CTEST...]: configures, builds, and runs all tests, or those that the options choose. The
# last lines of ctest are shown, or all of a failure.
build_and_test() {
  local preset=$1 log=build/$1.test.log limit
  limit=$(test_limit_minutes "$preset")
  shift
  build "$preset"
  run_tests "$preset" "$limit" "$log" "$@"
}

# run_tests PRESET MINUTES LOG [OPTION OF CTEST...]
run_tests() {
  local preset=$1 limit=$2 log=$3
  shift 3
  say "testing"
  # Each test runs once: one that fails is a fault of the product until shown otherwise.
  if telling_progress "$log" '^ *[0-9]+/[0-9]+ Test' timeout --kill-after=30 "${limit}m" \
    ctest --preset "$preset" -j "$jobs" "$@"; then
    sed -n '/tests passed,/,$p' "$log"
    tell_tests "build/$preset/Testing/Temporary/LastTest.log"
    return 0
  fi
  if ! grep -q '^Total Test time' "$log"; then
    say "The tests were stopped after $limit minutes. These had begun and not ended:"
    awk '/^ *Start +[0-9]+: /{name[$2]=$3} /Test +#[0-9]+: /{sub(/^.*Test +#/, ""); sub(/:.*/, ":"); delete name[$0]}
         END{for (n in name) print "  " name[n]}' "$log"
  fi
  # What failed has said why in the midst of it.
  grep -vE ' Passed |^ *Start +[0-9]+: ' "$log" | tail -n 400
  tell_tests "build/$preset/Testing/Temporary/LastTest.log"
  say "All of it is in $log."
  return 1
}

# build_and_test_rules PRESET: the same, and looks whether each rule has a test that was not skipped, over a wire that every
# machine has. A test that ran as one for ctest stands in its log, a share of a suite has written a file.
build_and_test_rules() {
  rm -rf "build/$1/results"
  build_and_test "$1" || return 1
  scripts/rules.sh --results "build/$1/results"/*.xml "build/$1.test.log"
}

# tell_tests LOG: how many tests there were of GoogleTest's, and why some were skipped, from all that they printed.
tell_tests() {
  awk '/^\[==========\] [0-9]+ tests? from .* ran\./ {tests += $2}
       /: Skipped$/ {skipped = 1; next}
       skipped && NF {reason[$0]++; skipped = 0}
       END {printf "%d tests of GoogleTest ran in them. Skipped, and why:\n", tests
            for (why in reason) printf "  %d: %s\n", reason[why], why}' "$1"
  grep -h '^skipped: ' "$1" | sort | uniq -c | sed 's/^ */  /; s/ skipped:/:/' || true
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

# What the part first leaves to the part release: the third wire, which is the first one without cross-process copy; uDAPL 2.0;
# what takes long. As names of ctest, and of tests in its shares of a suite.
not_first='/shm_ring|shm_ring_|conformance2|conformance.default|field\..*\.(judges|tcp|abi)|benchmarks|beside_writes|fuzz|man\.|Stress'
not_first_of_suites='-*/shm_ring*:*shm_ring_*:*Stress*'

# Where they cannot run, this part has shown nothing, and fails. The case that counts on the order of connections has one
# processor over TCP, where it holds (docs/porting.md). Behind them what has a program of another version or another registry
# at the other end.
test_field() {
  local wire rc=0 more
  build release
  [ -n "${ANYDAT_FIELD_PROGRAMS:-}" ] || say "dtest and dapltest of uDAPL 1.2 are left out: ANYDAT_FIELD_PROGRAMS names no folder (tests/field/build-1.2.sh)"
  for wire in shm tcp; do
    more=()
    [ $wire = shm ] || more=(-endpoints)
    tests/field/debian.sh build/release/field --library build/release/src --wire $wire --times 20 \
      --keep build/field.failed "${more[@]}" || rc=1
    [ -z "${ANYDAT_FIELD_PROGRAMS:-}" ] || tests/field/field.sh --programs "$ANYDAT_FIELD_PROGRAMS" \
      --library build/release/src --wire $wire --times 20 --keep build/field.failed "${more[@]}" || rc=1
  done
  taskset -c 0 tests/field/debian.sh build/release/field --library build/release/src --wire tcp --times 20 \
    --keep build/field.failed endpoints || rc=1
  [ -z "${ANYDAT_FIELD_PROGRAMS:-}" ] || taskset -c 0 tests/field/field.sh --programs "$ANYDAT_FIELD_PROGRAMS" \
    --library build/release/src --wire tcp --times 20 --keep build/field.failed endpoints || rc=1
  run_tests release 120 build/field.others.log --no-tests=error --repeat until-fail:20 \
    -R 'field\.2\.0\.their_registry|guest\.(provider|face20)' || rc=1
  ! grep -q '\*\*\*Skipped' build/field.others.log || { say "some of these were skipped: build/field.others.log" && rc=1; }
  build/release/bin/tests/face20_tests --gtest_brief=1 --gtest_filter='*BetweenVersions*' --gtest_repeat=20 \
    >build/field.versions.log 2>&1 || { tail -n 40 build/field.versions.log && rc=1; }
  return $rc
}

test_repeat() {
  local busy=() rc=0
  build release
  trap 'kill "${busy[@]}"' EXIT
  trap 'exit 1' INT TERM
  for _ in {1..8}; do
    (while :; do :; done) &
    busy+=($!)
  done
  # With so little of the processors each takes five times as long and more.
  local -x ANYDAT_TEST_TIMEOUT_SCALE=8
  run_tests release 1200 build/repeat.log --repeat until-fail:20 -LE guest || rc=1
  if [ -n "${ANYDAT_CHANGED:-}" ]; then
    run_tests release 600 build/repeat.changed.log --no-tests=error --repeat until-fail:100 -LE guest -R "$ANYDAT_CHANGED" || rc=1
  fi
  kill "${busy[@]}"
  trap - EXIT INT TERM
  return $rc
}

test_mutants() {
  build release
  scripts/mutate.sh --survivors | tee build/mutants.log
  return "${PIPESTATUS[0]}"
}

run_part() {
  case $1 in
    modes) test_modes ;;
    field) test_field ;;
    repeat) test_repeat ;;
    mutants) test_mutants ;;
    fuzz) scripts/fuzz.sh 1800 ;;
    first)
      build release dat dat2 datinfo datping datperf unit_tests system_tests conformance_tests process_tests wire_tests field_broken \
        plugin_host old_registry
      GTEST_FILTER=$not_first_of_suites run_tests release 15 build/first.test.log \
        -L 'unit|conformance|process|wire|tools|field' -E "$not_first"
      ;;
    release) build_and_test_rules release ;;
    asan | tsan) build_and_test "$1" ;;
    clang)
      # The analysis works on declarations, so objects suffice.
      mkdir -p build
      quietly build/clang.configure.log cmake --preset clang -DANYDAT_TESTS=OFF -DANYDAT_BENCH=OFF
      quietly build/clang.build.log cmake --build --preset clang --target anydat_os anydat_common anydat_core anydat_face12 anydat_face20 anydat_verbs
      ;;
    checks)
      scripts/check-arrows.sh || return 1
      scripts/check-comments.sh || return 1
      scripts/check-sizes.sh || return 1
      scripts/check-docs.sh || return 1
      # It lists the rules that no test names, and fails if there are any.
      scripts/rules.sh || return 1
      # Each mutant finds its place in the source. Some of them meet their tests, others with the next commit.
      scripts/mutate.sh --list | tail -n 1
      [ "${PIPESTATUS[0]}" = 0 ] || return 1
      build release dat dat2 anydat_verbs conformance_tests process_tests
      scripts/check-arrows.sh --objects build/release || return 1
      say "a sample of mutants"
      # The whole list has not been shown to die in one run yet: what lives is told, and fails nothing.
      scripts/mutate.sh --light --sample 8 --seed "$(git rev-list --count HEAD)" || say "a mutant lives, or could not be built: see above"
      scripts/check-models.sh || return 1
      bench/instructions.sh || return 1
      bench/face_costs.sh || return 1
      ;;
  esac
}

need_packages "${build_packages[@]}" "${verbs_packages[@]}" "${test_packages[@]}"
# Without them the tests in the guest and between network namespaces are skipped and say so.
if [[ " ${parts[*]} " =~ " "(release|field|repeat)" " ]]; then need_packages "${guest_packages[@]}" "${hosts_packages[@]}" || true; fi
if [[ " ${parts[*]} " =~ " "(clang|tsan)" " ]]; then need_packages clang libclang-rt-dev; fi

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
