#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Shows what has been mended since a commit: runs the tests of a list against the library as it was then and as it is now.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

usage() {
  cat <<END
Usage: scripts/show-fixed.sh [--since COMMIT] [--filter PATTERN] [--seconds N] [--table FILE]
Builds COMMIT in build/COMMIT and this tree in build/release, and runs each test of tests/since-COMMIT.txt twice: with the
library of COMMIT, up to three times until it fails, and with that of this tree. Prints a line for each, with what came
of it then and now.
A test that needs a call, a program or an option that COMMIT does not have fails there, and that counts. Exit code 0 if
every test failed then and passes now.
  --since COMMIT    compare with this commit (default: 3b47b7c)
  --filter PATTERN  only the tests whose line matches this regular expression
  --seconds N       each test may take so long (default 60; a test that hangs has failed)
  --table FILE      write the table there, too
Tests that speak the format of shared memory themselves (tests/process/raw_peer.h) are not for the list: with another
version of it they fail before they come to what they show.
Lines of the list are 'BINARY  TEST.NAME'; a # starts a comment. BINARY is a test program, or 'tools': then TEST.NAME is
a script of tests/tools without its .sh. Test programs that hold objects of the library (unit_tests, wire_tests, system_tests) are built
once more for COMMIT, from its library and this tree's tests without the files that do not compile there. Those of
verbs_tests run on the devices of the guest (tests/guest), which is booted for each; without it they are left out.
END
}

since=3b47b7c filter=. seconds=60 table=/dev/null
while [ $# -gt 0 ]; do
  case $1 in
    --since) since=${2:?} && shift ;;
    --filter) filter=${2:?} && shift ;;
    --seconds) seconds=${2:?} && shift ;;
    --table) table=${2:?} && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
list=tests/since-$since.txt
[ -e "$list" ] || die "there is no $list"
old=build/$since
now=build/release

need_packages "${build_packages[@]}" "${verbs_packages[@]}" "${test_packages[@]}"
mapfile -t tests < <(sed 's/#.*//' "$list" | awk 'NF == 2 { print $1, $2 }' | grep -E -- "$filter" | sort -u)
[ ${#tests[@]} -gt 0 ] || die "no test of $list matches $filter"
mapfile -t binaries < <(printf '%s\n' "${tests[@]}" | cut -d' ' -f1 | grep -vx tools | sort -u)

say "Building this tree ..." >&2
mkdir -p build
quietly "$now.show-fixed.log" cmake --preset release
quietly "$now.show-fixed.log" cmake --build --preset release --target dat anydat_verbs datinfo datping datperf "${binaries[@]}"

say "Building $since ..." >&2
if [ ! -e "$old/.git" ]; then
  git worktree prune
  quietly "$old.log" git worktree add --detach "$old" "$since"
fi
quietly "$old.log" cmake -S "$old" -B "$old/build" --preset release -DANYDAT_BENCH=OFF -DANYDAT_TESTS=OFF
quietly "$old.log" cmake --build "$old/build" --target dat anydat_verbs datinfo datping datperf

# holds_objects PROGRAM: it is made of the library's objects and does not load the library.
holds_objects() { ! readelf -d "$1" | grep -q 'NEEDED.*libdat\.so'; }

# build_mixed PROGRAM...: the same test programs with the old library's objects in them. A file that does not compile is
# left out, and its tests with it.
mixed=build/$since.mixed
build_mixed() {
  local tries file
  local -a missing
  rm -rf "$mixed/tree"
  mkdir -p "$mixed/tree"
  git -C "$old" archive HEAD | tar -x -C "$mixed/tree"
  rm -rf "$mixed/tree/tests"
  cp -a tests "$mixed/tree/"
  # What this tree's tests want of it: its functions for CMake, and a library to name for those of uDAPL 2.0.
  cat >"$mixed/tree/today.cmake" <<EOF
include($PWD/cmake/precompile.cmake)
if(NOT EXISTS \${PROJECT_SOURCE_DIR}/include/dat2)
  file(WRITE \${PROJECT_BINARY_DIR}/none.cc "")
  add_library(dat2 SHARED \${PROJECT_BINARY_DIR}/none.cc)
endif()
EOF
  for ((tries = 0; tries < 8; ++tries)); do
    # A launcher has the tests compiled one by one, so that one can be left out.
    cmake -S "$mixed/tree" -B "$mixed/build" --preset release -DANYDAT_BENCH=OFF -DANYDAT_TESTS_APART=ON \
      -DCMAKE_CXX_COMPILER_LAUNCHER=env -DCMAKE_PROJECT_INCLUDE="$PWD/$mixed/tree/today.cmake" >"$mixed.log" 2>&1 ||
      return 1
    if cmake --build "$mixed/build" --target "$@" -- -k 0 >>"$mixed.log" 2>&1; then
      return 0
    fi
    mapfile -t missing < <(sed -nE 's!^FAILED: tests/CMakeFiles/[^/]+\.dir/(.*\.cc)\.o.*!\1!p' "$mixed.log" | sort -u)
    [ ${#missing[@]} -gt 0 ] || return 1
    for file in "${missing[@]}"; do
      say "  left out at $since, since it does not compile there: tests/$file" >&2
      : >"$mixed/tree/tests/$file"  # CMake may know it by its name
    done
  done
  return 1
}

to_mix=()
for binary in "${binaries[@]}"; do
  if holds_objects "$now/bin/tests/$binary"; then to_mix+=("$binary"); fi
done
if [ ${#to_mix[@]} -gt 0 ]; then
  build_mixed "${to_mix[@]}" || say "  ${to_mix[*]}: cannot all be built for $since; see $mixed.log" >&2
fi

# then_program BINARY: the program that runs its tests as of COMMIT; empty if there is none.
then_program() {
  if holds_objects "$now/bin/tests/$1"; then
    [ ! -x "$mixed/build/bin/tests/$1" ] || realpath "$mixed/build/bin/tests/$1"
  else
    realpath "$now/bin/tests/$1"
  fi
}

# stand_ins PROGRAM: a library with the calls that it names and COMMIT does not have, so that its tests of others run there.
# A test that calls one of these ends in abort().
stand_ins() {
  local names="$old.stand-ins.${1##*/}"
  LD_LIBRARY_PATH=$(realpath "$old/build/src") ldd -r "$1" 2>&1 |
    sed -nE 's/^undefined symbol: ([A-Za-z0-9_]+),.*/void \1(void) { __builtin_abort(); }/p' >"$names.c"
  [ -s "$names.c" ] || return 0
  ${CC:-cc} -w -shared -fPIC -o "$names.so" "$names.c"
  realpath "$names.so"
}

# The guest is given tools and a library from one folder, and the tests from another.
guest=build/guest
has_guest=false
if [[ " ${binaries[*]} " == *" verbs_tests "* ]]; then
  tests/guest/image.sh "$guest" >"$now.show-fixed.log" 2>&1 && has_guest=true || tail -n 1 "$now.show-fixed.log" >&2
fi
in_guest() { # TEST BUILD
  local folder rc=0
  # A filter that names no test is no failure to the program.
  grep -qF "TEST_P(${1%.*}, ${1#*.})" tests/verbs/*.cc || return 1
  folder=$(mktemp -d)
  mkdir -p "$folder/bin/tests"
  ln -s "$(realpath "$now/bin/tests/verbs_tests")" "$folder/bin/tests/"
  ln -s "$(realpath "$2/src")" "$folder/src"
  tests/guest/faults-test.sh "$guest" "$folder" "*$1*" || rc=$?
  rm -rf "$folder"
  return $rc
}

# What could not be built shows nothing.
# once BINARY TEST PROGRAM BUILD [PRELOADED]: passed, FAILED, TIME OUT, SKIPPED, NOT BUILT or NO SUCH (test)
once() {
  local output code=0
  if [ "$1" = tools ]; then
    output=$(timeout --kill-after=5 "$seconds" "tests/tools/$2.sh" "$4/bin" 2>&1) || code=$?
    [ $code -ne 0 ] || output='[  PASSED  ] 1'
  elif [ "$1" = verbs_tests ]; then
    $has_guest || { say "NO GUEST" && return; }
    output=$(in_guest "$2" "$4" 2>&1) || code=$?
    [ $code -ne 0 ] || output='[  PASSED  ] 1'
  elif [ -z "$3" ]; then
    say "NOT BUILT" && return
  else
    output=$(LD_PRELOAD=${5:-} LD_LIBRARY_PATH=$(realpath "$4/src") ANYDAT_TEST_BIN=$(realpath "$4/bin") timeout --kill-after=5 "$seconds" "$3" \
      --gtest_filter="$2" --gtest_brief=1 2>&1) || code=$?
  fi
  case $code in
    0) ;;
    77) say "SKIPPED" && return ;;
    124 | 137) say "TIME OUT" && return ;;
    *) say "FAILED" && return ;;
  esac
  if grep -qE '\[ +SKIPPED +\]' <<<"$output"; then
    say "SKIPPED"
  elif grep -qE '\[ +PASSED +\] [1-9]' <<<"$output"; then
    say "passed"
  else
    say "NO SUCH"
  fi
}

declare -A preloaded
for binary in "${binaries[@]}"; do
  holds_objects "$now/bin/tests/$binary" || preloaded[$binary]=$(stand_ins "$now/bin/tests/$binary")
done

shown=0
{
  printf '%-10s %-10s %s\n' "$since" now test
  for line in "${tests[@]}"; do
    read -r binary name <<<"$line"
    program='' now_program=''
    if [ "$binary" != tools ]; then
      program=$(then_program "$binary")
      now_program=$(realpath "$now/bin/tests/$binary")
    fi
    before=''
    # What fails now and then is at fault, too.
    for _ in 1 2 3; do
      before=$(once "$binary" "$name" "$program" "$old/build" "${preloaded[$binary]:-}")
      [ "$before" = passed ] || break
    done
    after=$(once "$binary" "$name" "$now_program" "$now")
    mark='   <- not shown'
    if [ "$after" = passed ] && [[ "$before" =~ ^(FAILED|TIME OUT|NO SUCH)$ ]]; then
      mark='' shown=$((shown + 1))
    fi
    printf '%-10s %-10s %s %s%s\n' "$before" "$after" "$binary" "$name" "$mark"
  done
  say "$shown of ${#tests[@]} tests failed at $since and pass now"
} | tee "$table" "$now.show-fixed.table"
! grep -q 'not shown$' "$now.show-fixed.table"
