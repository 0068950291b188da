# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of conformance.sh: every test over ADAPTER that FILTER selects, each in a process of its own, so that one that
# hangs or crashes costs no other. JOBS tests run at a time: what fails mostly waits. Told is
# what failed, with SHALL=fail what passed.
#
# Arguments: ADAPTER FILTER SHALL JOBS SCALE LIMIT; SCALE is how patient the tests are, LIMIT in seconds for one test.
adapter=$1 filter=$2 jobs=$4 limit=$6
export ANYDAT_TEST_ADAPTERS=$adapter ANYDAT_TEST_TIMEOUT_SCALE=$5 limit shall=$3
# What each test prints; a folder of the host's if it lends one.
results=/tmp/results
[ ! -d /host ] || results=/host
mkdir -p "$results"
export results
mapfile -t tests < <(conformance_tests "--gtest_filter=$filter" --gtest_list_tests |
  awk '/^[^ ].*\.( |$)/ {suite = $1; next} /^  / {print suite $1}' | grep "/${adapter//-/_}\$")

# one TEST: what it came to, and what it printed, into files of its name.
one() {
  local out=$results/${1//\//_} rc=0 start=$SECONDS what
  timeout -k 5 "$limit" conformance_tests "--gtest_filter=$1" > "$out" 2>&1 || rc=$?
  case $rc in
    0) what=passed && ! grep -q '^\[  SKIPPED \]' "$out" || what=skipped ;;
    1) what=failed ;;
    124 | 137) what="failed: no end after $limit s" ;;
    *) what="failed: status $rc" ;;
  esac
  echo "$what" > "$out.result"
  echo "$what $1 ($((SECONDS - start)) s)"
  case $what in
    skipped) sed -n '/: Skipped$/{n;s/^/    | /p}' "$out" ;;
    failed*) [ "$shall" = fail ] || grep -vE '^(\[|Running main|Note: Google|$)' "$out" | tail -n 30 | sed 's/^/    | /' ;;
  esac
}
export -f one
count() { cat "$results"/*.result 2> /dev/null | grep -c "^$1"; }

# Whole reports, one after another: they come from several at a time.
report() {
  local text
  text=$(one "$1")
  case $shall:$text in
    pass:passed* | fail:failed*) ;;
    *) echo "$text" ;;
  esac
}
export -f report
printf '%s\n' "${tests[@]}" | xargs -P "$jobs" -I{} bash -c 'report "$1"' report {}
echo "$adapter: ${#tests[@]} tests: $(count passed) passed, $(count skipped) skipped, $(count failed) failed"
[ ${#tests[@]} -gt 0 ] || exit 3
if [ "$shall" = pass ]; then [ "$(count failed)" = 0 ]; else [ "$(count passed)" = 0 ]; fi
