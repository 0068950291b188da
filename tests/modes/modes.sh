#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests where the system grants less than usual, and compares with the same tests run as usual.
set -euo pipefail

usage() {
  cat <<USAGE
Usage: ${0##*/} [--all | --all=PROGRAM] FOLDER MODE
FOLDER is that of the test programs. MODE is one of
  namespaces      in a user, a network and a PID namespace of its own, without privilege
  refused         with process_vm_*, membarrier, userfaultfd and pidfd calls answering EPERM, all together
  refused-CALLS   with one kind of them (process_vm, membarrier, userfaultfd, pidfd)
  few-files       with 64 descriptors
  locked-memory   under mlockall(MCL_FUTURE), with RLIMIT_MEMLOCK 1 MiB
  memory-group    in a memory cgroup of 512 MiB
  no-files        under RLIMIT_FSIZE 0, over TCP
  usual           as it is, to compare with
Without --all a chosen set of conformance tests runs. With it all of conformance_tests does, in one process, and each test of
process_tests in a process of its own, ANYDAT_TEST_JOBS of them (default 2) at once. --all=PROGRAM is one of these two.
Each test runs once. A test that is skipped only there fails, as one that fails does, unless kept-out.txt beside this script
names it for the mode. Exit 77: the system does not allow the mode at all.
USAGE
}

all=false
suites=(conformance_tests)
case ${1-} in
  --all) all=true suites=(conformance_tests process_tests) && shift ;;
  --all=*) all=true suites=("${1#--all=}") && shift ;;
esac
[ $# -eq 2 ] || { usage >&2 && exit 2; }
programs=$(realpath "$1") mode=$2
here=$(cd "$(dirname "$0")" && pwd)
jobs=${ANYDAT_TEST_JOBS:-2}
work=$(mktemp -d)
group=
leave() {
  if [ -n "$group" ]; then rmdir "$group" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap leave EXIT

# make_memory_group BYTES: makes a cgroup beside that of this process, or in it where the system is of the first version;
# sets $group. Fails where there is no leave to.
make_memory_group() {
  local own top bytes=$1
  if own=$(grep -m 1 -E '^[0-9]+:([a-z_,]*,)?memory(,[a-z_,]*)?:' /proc/self/cgroup); then
    top=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/self/mounts)
    make_group_in "$top${own##*:}" memory.limit_in_bytes "$bytes"
  else
    own=$(sed -n 's/^0:://p' /proc/self/cgroup)
    top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
    make_group_in "$(dirname "$top$own")" memory.max "$bytes"
  fi
}

make_group_in() {
  local made=$1/anydat-modes-$$
  mkdir "$made" 2>/dev/null || return 1
  group=$made
  echo "$3" 2>/dev/null >"$made/$2" && (echo "$BASHPID" >"$made/cgroup.procs") 2>/dev/null
}

without=''
wires=('')
confine=("$programs/confine")
case $mode in
  usual) run=(env) ;;
  namespaces) run=(unshare --user --map-root-user --net --pid --fork --mount-proc sh -c 'ip link set lo up && exec "$@"' sh) ;;
  refused) run=("${confine[@]}" --deny process_vm --deny membarrier --deny userfaultfd --deny pidfd --) ;;
  refused-*) run=("${confine[@]}" --deny "${mode#refused-}" --) ;;
  few-files) run=("${confine[@]}" --files 64 --) ;;
  locked-memory) run=("${confine[@]}" --locked-bytes 1048576 -- env "LD_PRELOAD=$programs/liblock_all.so") ;;
  memory-group)
    make_memory_group $((512 << 20)) || { echo "this system does not allow $mode" && exit 77; }
    jobs=1  # all of them share the group
    run=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group")
    ;;
  no-files) run=("${confine[@]}" --file-bytes 0 --) wires=(/tcp) without='*/shm*' ;;
  *) usage >&2 && exit 2 ;;
esac
"${run[@]}" true 2>/dev/null || { echo "this system does not allow $mode" && exit 77; }

while read -r of name _; do
  if [ "$of" = "$mode" ]; then without+=:$name; fi
done < <(grep -v '^#' "$here/kept-out.txt")

# Opening, connecting, messages, RDMA and shared queues, on each wire. What goes on for long to find rare faults, or waits for
# a time-out, is not repeated here.
chosen() {
  local part wire
  for part in EpConnect EpDisconnect DtoMessages DtoOrder IaOpen IaClose Psp RdmaRead RdmaWrite SrqPost; do
    for wire in "${wires[@]}"; do printf '*%s*%s:' "$part" "$wire"; done
  done
}
if $all; then
  filter='*' limit=1800
else
  filter=$(chosen) without+=':*Hammer*:*Walk*:*Stress*:*Traffic*:*Invariant*:*ForEver*:*WhilePending*' limit=280
fi

# names KIND FILE: the tests that FILE says have ended in that way.
names() {
  { grep -aoE "^\[ +$1 +\] [A-Za-z0-9_]+[/.][A-Za-z0-9_/.]+" "$2" || true; } | sed 's/.*\] //' | sort -u
}

# tests_of PROGRAM FILTER
tests_of() {
  "$programs/$1" --gtest_list_tests --gtest_filter="$2" | sed 's/ *#.*//' | awk '/^[^ ]/ { suite = $1; next } { print suite $1 }'
}

# together PROGRAM LOG: runs the chosen tests in one process. RLIMIT_FSIZE is for the log as well, so that it goes through a pipe.
together() {
  { timeout --kill-after=5 "$limit" "${run[@]}" "$programs/$1" --gtest_filter="$filter:-$without" 2>&1 || true; } | cat >"$2"
  grep -q '^\[==========\] .* ran\.' "$2" || { tail -n 20 "$2" && echo "the tests did not come to their end" && exit 1; }
}

# apart PROGRAM LOG: the same, each in a process of its own. What ends without a word has failed.
apart() {
  local name at=0
  tests_of "$1" "$filter:-$without" >"$work/list"
  mkdir "$work/apart"
  while read -r name; do
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    at=$((at + 1))
    { timeout --kill-after=5 180 "${run[@]}" "$programs/$1" --gtest_filter="$name" 2>&1 || echo "exit code $?"; } \
      | cat >"$work/apart/$at" &
  done <"$work/list"
  wait
  cat "$work"/apart/* >"$2"
  { names OK "$2" && names SKIPPED "$2"; } | sort -u >"$work/ended"
  sort "$work/list" | comm -23 - "$work/ended" | sed 's/^/[  FAILED  ] /' >>"$2"
}

# said_of TEST FILE: the first lines of what TEST printed.
said_of() {
  awk -v test="$1" '/^\[ +RUN +\] / && $NF == test { of = 1; next }
    of && (/^\[ +[A-Z]+ +\] / || ++lines > 30) { exit }
    of' "$2"
}

bad=0
# judge PROGRAM LOG
judge() {
  local name
  names SKIPPED "$2" >"$work/skipped"
  for name in $(names FAILED "$2"); do
    echo "$name fails in the mode $mode:"
    said_of "$name" "$2"
    bad=1
  done
  # Those that are skipped, as usual.
  if [ -s "$work/skipped" ]; then
    : >"$work/usually"
    while read -r name; do
      "$programs/$1" --gtest_filter="$name" >"$work/usual" 2>&1 || true
      names SKIPPED "$work/usual" >>"$work/usually"
    done <"$work/skipped"
    for name in $(sort -u "$work/usually" | comm -23 "$work/skipped" -); do
      echo "$name is skipped in the mode $mode only"
      said_of "$name" "$2"
      bad=1
    done
  fi
  echo "$mode, $1: $(names OK "$2" | wc -l) passed, $(wc -l <"$work/skipped") skipped as usual, $SECONDS s"
}

for suite in "${suites[@]}"; do
  case $suite in
    conformance_tests) together "$suite" "$work/log" ;;
    process_tests) apart "$suite" "$work/log" ;;
    *) usage >&2 && exit 2 ;;
  esac
  judge "$suite" "$work/log"
done
exit $bad
