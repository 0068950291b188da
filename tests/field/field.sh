#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs test programs of OpenFabrics, which were built apart, on this library, and judges them by what they print: at both
# ends, buffers and counted bytes; their exit codes say little. Over shared memory both ends are on one host; over TCP on
# two, which are network namespaces of this run. They use fixed ports, which no other program has there.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"

all_cases=(dtest modes cno dtestcm dtestsrq dtestx transactions endpoints performance functions limits)
usage() {
  cat <<END
Usage: tests/field/field.sh --library FOLDER --programs FOLDER [OPTION...] [CASE...]
  --library FOLDER    where libdat.so.1, or libdat2.so.2, is
  --programs FOLDER   where dtest, dapltest, dtestcm, dtestsrq and dtestx are, or some of them
  --registry FOLDER   the programs load the library of that name from there; the one under test is its Provider
  --dat 1.2|2.0       the version of uDAPL that they were built for (default 1.2)
  --wire shm|tcp      one wire alone
  --times N           each case so many times (default 1)
  --keep FOLDER       what both ends of a case that failed have printed goes there
  --broken MODULE     shows that each judge fails, by a library that is broken on purpose (MODULE: libfield_broken.so)
Cases: ${all_cases[*]} (those whose program is there), or all but each -CASE
Exit code 77: there are no such programs, or this machine does not let us.
END
}
skip() {
  say "skipped: $*"
  exit 77
}

if [ "${1:-}" != --inside ]; then
  [ $# -ge 1 ] || { usage >&2 && exit 2; }
  command -v ip >/dev/null || skip "there is no ip(8) here (package iproute2)"
  reason=$(unshare --user --map-root-user --net --pid --fork --mount-proc \
    ip link add name probe type veth peer name eborp 2>&1) || skip "no network of our own: $reason"
  exec unshare --user --map-root-user --net --mount --pid --fork --mount-proc --kill-child "$0" --inside "$@"
fi
shift

library='' programs='' registry='' dat=1.2 wires=(shm tcp) times=1 broken='' keep='' left_out=' ' cases=()
while [ $# -gt 0 ]; do
  case $1 in
    --library) library=$(realpath "$2") && shift ;;
    --programs) programs=${2:+$(realpath "$2")} && shift ;;
    --registry) registry=$(realpath "$2") && shift ;;
    --dat) dat=$2 && shift ;;
    --wire) wires=("$2") && shift ;;
    --times) times=$2 && shift ;;
    --keep) mkdir -p "$2" && keep=$(realpath "$2") && shift ;;
    --broken) broken=$(realpath "$2") && shift ;;
    -h | --help) usage && exit 0 ;;
    -[a-z]*) left_out+="${1#-} " ;;
    -*) usage >&2 && exit 2 ;;
    *) cases+=("$1") ;;
  esac
  shift
done
[ -n "$library" ] || { usage >&2 && exit 2; }
[ -n "$programs" ] || skip "no folder of programs is given"
case $dat in
  1.2) soname=libdat.so.1 ;;
  2.0) soname=libdat2.so.2 ;;
  *) usage >&2 && exit 2 ;;
esac
[ -e "$library/$soname" ] || skip "there is no $soname in $library"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ip link set lo up
unshare --net sleep infinity &
other_host=$!
until [ "$(readlink "/proc/$other_host/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add name eth0 type veth peer name eth0 netns "$other_host"
ip address add 10.79.0.1/24 dev eth0
ip link set eth0 up
nsenter --target "$other_host" --net sh -c 'ip link set lo up && ip address add 10.79.0.2/24 dev eth0 && ip link set eth0 up'

export LD_LIBRARY_PATH=$library DAT_OVERRIDE=/dev/null FIELD_DAT=$dat  # so that the library alone decides which adapters there are
if [ -n "$registry" ]; then
  [ -e "$registry/$soname" ] || skip "there is no $soname in $registry"
  for name in soft-lo soft-eth0; do
    say "$name u$dat nonthreadsafe default $library/$soname anydat.1.0 \"$name\" \"\""
  done >"$work/dat.conf"
  export LD_LIBRARY_PATH=$registry DAT_OVERRIDE=$work/dat.conf
fi
[ "$dat" = 2.0 ] || export DAT_COMPAT=openfabrics
patience=$((60 * ${ANYDAT_TEST_TIMEOUT_SCALE:-1}))

. "$here/running.sh"
. "$here/dtest.sh"
. "$here/dapltest.sh"

# ---- What is run ----

program_of() {
  case $1 in
    dtest | modes | cno) echo dtest ;;
    dtestcm | dtestsrq | dtestx) echo "$1" ;;
    transactions | endpoints | performance | functions | limits) echo dapltest ;;
    *) die "there is no case $1" ;;
  esac
}
if [ ${#cases[@]} -eq 0 ]; then
  for name in "${all_cases[@]}"; do
    [ "$name" != modes ] || [ "$dat" = 2.0 ] || continue
    if [[ $left_out != *" $name "* ]] && [ -x "$programs/$(program_of "$name")" ]; then cases+=("$name"); fi
  done
  [ ${#cases[@]} -gt 0 ] || skip "there is no such program in $programs"
fi
for name in "${cases[@]}"; do [ -x "$programs/$(program_of "$name")" ] || skip "no $(program_of "$name") in $programs"; done

# What is broken for which case: only what the program's own output can show.
breaks_of() {
  case $1 in
    dtest) echo send write read ;;
    cno) echo send ;;
    modes) echo write ;;
    transactions | endpoints) echo send refuse ;;
    dtestsrq) echo send refuse ;;
    dtestx) echo extension ;;
    functions) echo free ;;
    *) echo refuse ;;
  esac
}

failed=0
for wire in "${wires[@]}"; do
  use_wire "$wire"
  for name in "${cases[@]}"; do
    if [ -n "$broken" ]; then
      for break in $(breaks_of "$name"); do
        if (export FIELD_BREAK=$break LD_PRELOAD=$broken && "case_$name") >"$work/verdict" 2>&1; then
          say "$wire $name: passes although $break is broken"
          failed=1
        else
          say "$wire $name, $break broken: $(grep -v "^note" "$work/verdict" | head -n 1 | cut -c1-150)"
        fi
        stop_all
      done
      continue
    fi
    for ((time = 1; time <= times; ++time)); do
      begin=$SECONDS
      if ("case_$name") >"$work/verdict" 2>&1; then
        say "$wire $name: passed in $((SECONDS - begin)) s$(sed -n 's/^note: /; /p' "$work/verdict" | sort | uniq -c | tr -s ' \n' ' ')"
      else
        say "$wire $name: FAILED: $(cat "$work/verdict")"
        for end in ${keep:+server client}; do cp "$work/$end" "$keep/$wire-$name-$time-$end" 2>/dev/null || true; done
        failed=1
      fi
      stop_all
    done
  done
done
exit $failed
