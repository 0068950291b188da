# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the comparisons share: options, one measurement of the product or of a peer, medians, and the table.
#
# Absolute figures drift between machines and within the hour, so each run measures the product and its peers in turn, on
# the same two processors, and the table shows medians over the runs and the median of the ratios of neighbours.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

usage() {
  cat <<END
Usage: bench/${0##*/} [--runs N] [--quick] [--require] [--cpus A,B] [--build DIR] [--ucx DIR]
  --runs N     measure everything N times and take medians (default 9; at least 9 for figures to be quoted)
  --quick      3 short runs, to see that it works
  --require    exit with 1 if a target ratio is missed
  --cpus A,B   the two processors to use (default 0,1: server, client)
  --build DIR  use the programs of this build (default: build/compare, brought up to date first)
  --ucx DIR    measure the UCX that is installed there (DIR/bin/ucx_perftest), too, beside the system's
Example: bench/${0##*/} --runs 11 --require
END
}

# shellcheck disable=SC2034  # quick is for who sources this
runs=9 quick=false require=false cpus=0,1 ucx_apart='' build=
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=${2:?} && shift ;;
    --quick) quick=true runs=3 ;;
    --require) require=true ;;
    --cpus) cpus=${2:?} && shift ;;
    --build) build=$(realpath "${2:?}") && shift ;;
    --ucx)
      ucx_apart=$(realpath "${2:?}") && shift
      [ -x "$ucx_apart/bin/ucx_perftest" ] || { echo "${0##*/}: $ucx_apart has no bin/ucx_perftest" >&2 && exit 2; }
      ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
server_cpu=${cpus%,*} client_cpu=${cpus#*,}
[ "$(nproc)" -ge 2 ] || die "this needs two processors"

# have_programs TARGET...: the peers' packages, and these programs of ours in $build, built first unless a build was given.
have_programs() {
  local program
  need_packages ucx-utils libfabric-bin
  if [ -z "$build" ]; then
    build=build/compare
    need_packages "${build_packages[@]}"
    mkdir -p "$build"
    quietly "$build/configure.log" cmake --preset release -B "$build" -DANYDAT_TESTS=OFF
    quietly "$build/build.log" cmake --build "$build" --target "$@"
  fi
  for program in "$@"; do
    [ -x "$build/bin/$program" ] || [ -x "$build/bin/bench/$program" ] || die "$build has no program $program"
  done
}

work=$(mktemp -d)
background=()
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

# ---- One measurement each: prints one number ----

# shellcheck disable=SC2154  # wire is set by who sources this
# product METRIC KEY ARGUMENT...: one run of datperf over $wire.
product() {
  local metric=$1 key=$2
  shift 2
  timeout 300 "$build/bin/datperf" "$metric" --wire "$wire" --cpus "$server_cpu,$client_cpu" --json "$@" >"$work/product" ||
    die "datperf $metric $* failed"
  sed -n "s/.*\"$key\":\([0-9.eE+-]*\).*/\1/p" "$work/product"
}

listening() { # is anybody listening on TCP port $1?
  local hex
  hex=$(printf '%04X' "$1")
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port=":$hex" '$4 == "0A" && $2 ~ port "$" {found = 1} END {exit !found}'
}

free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)) && listening "$port"; do :; done
  echo "$port"
}

await_listener() {
  local tries
  for ((tries = 0; tries < 200; ++tries)); do
    listening "$1" && return 0
    sleep 0.05
  done
  return 1
}

# floor PATTERN: one run of bench/floor, for the figures whose keys match; floor_figure KEY: one of those.
floor() {
  local arguments=(--json --cpus "$server_cpu,$client_cpu" --only "$1")
  ! $quick || arguments+=(--quick)
  timeout 300 "$build/bin/bench/floor" "${arguments[@]}" >"$work/floor" || die "floor --only '$1' failed"
}
floor_figure() { sed -n "s/.*\"$1\":\([0-9.eE+-]*\).*/\1/p" "$work/floor"; }

# ucx_program NAME ARGUMENT...: a program of the system's UCX, or of the one that was built apart if ucx_home says so.
ucx_program() {
  local program=$1
  shift
  [ -z "${ucx_home:-}" ] || set -- env LD_LIBRARY_PATH="$ucx_home/lib" "$ucx_home/bin/$program" "$@"
  [ -n "${ucx_home:-}" ] || set -- "$program" "$@"
  timeout 300 "$@"
}

# ucx TEST SIZE ITERATIONS COLUMN: one run of ucx_perftest. Its last line has eight columns with -f: iterations; the
# 50th percentile, average and overall latency or overhead in microseconds; average and overall MB/s (of 2^20 bytes);
# average and overall messages a second.
ucx() {
  local test=$1 size=$2 iterations=$3 column=$4 port warm_up
  port=$(free_port)
  warm_up=$((iterations / 10))
  export UCX_TLS=${ucx_transports:?} UCX_ALLOC_PRIO=${ucx_memory:-md:sysv,md:posix,huge,thp,md:*,mmap,heap}
  ucx_program ucx_perftest -p "$port" -c "$server_cpu" >/dev/null 2>&1 &
  local server=$!
  await_listener "$port" || die "ucx_perftest did not start to listen"
  ucx_program ucx_perftest 127.0.0.1 -p "$port" -t "$test" -s "$size" -n "$iterations" -w "$warm_up" \
    -c "$client_cpu" -f >"$work/ucx" 2>&1 || die "ucx_perftest -t $test -s $size failed: $(tail -n 1 "$work/ucx")"
  wait "$server" || true
  awk -v column="$column" 'NF == 8 && $1 ~ /^[0-9]+$/ {value = $column} END {print value}' "$work/ucx"
}
ucx_latency_ns() { ucx tag_lat "$1" "$2" 2 | awk '{print $1 * 1000}'; }
ucx_rate_mmsgs() { ucx tag_bw "$1" "$2" 8 | awk '{print $1 / 1e6}'; }
ucx_bandwidth_gb() { ucx tag_bw "$1" "$2" 6 | awk '{print $1 * 1048576 / 1e9}'; }

# fabric_latency_ns PROVIDER ENDPOINT_TYPE SIZE ITERATIONS: libfabric's pingpong reports microseconds for each transfer,
# which is half a round trip. Not every machine lets each provider work; then there is no number.
fabric_latency_ns() {
  local provider=$1 type=$2 size=$3 iterations=$4 port
  port=$(free_port)
  taskset -c "$server_cpu" timeout 120 fi_pingpong -p "$provider" -e "$type" -S "$size" -I "$iterations" -B "$port" \
    >/dev/null 2>&1 &
  local server=$!
  if await_listener "$port"; then
    taskset -c "$client_cpu" timeout 120 fi_pingpong -p "$provider" -e "$type" -S "$size" -I "$iterations" -P "$port" \
      127.0.0.1 2>/dev/null | awk '$1 ~ /^[0-9]/ {value = $7 * 1000} END {print value}' || true
  fi
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
}

# ---- Samples and the table ----

declare -A samples # name -> numbers
note() { samples[$1]+=" ${2:-}"; }
# note_ucx NAME COMMAND...: what that measures, of the system's UCX as ucx_NAME, and of that of --ucx as apart_NAME.
note_ucx() {
  local name=$1
  shift
  note "ucx_$name" "$("$@")"
  [ -z "$ucx_apart" ] || note "apart_$name" "$(ucx_home=$ucx_apart && "$@")"
}
note_floor() { note "floor_$1" "$(floor_figure "$2")"; }

say_versions() {
  say "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), processors $server_cpu and $client_cpu, Linux $(uname -r)"
  [ -z "$ucx_apart" ] || say "apart: $(ucx_home=$ucx_apart ucx_program ucx_info -v 2>/dev/null | sed -nE 's/^# (Library v|V)ersion:? /UCX /p' || true) in $ucx_apart"
  say "$(ucx_info -v 2>/dev/null | sed -nE 's/^# (Library v|V)ersion:? /UCX /p' || true); $(fi_info --version 2>/dev/null | sed -n 's/^libfabric: /libfabric /p')"
}

missed=0 close=0
median() { # of the numbers of one name; "-" if there are none
  tr ' ' '\n' <<<"${samples[$1]}" | grep . | sort -g |
    awk '{v[NR] = $1} END {if (!NR) print "-"; else print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}' || true
}

# ratios OURS PEER: the median of what ours is divided by the peer's, each measured next to each other, and the interval
# that holds the true median with a confidence of 95 % (sign test; 96 % with 9 runs, 94 % with 5, and only 75 % with 3).
ratios() {
  paste <(tr ' ' '\n' <<<"${samples[$1]}" | grep .) <(tr ' ' '\n' <<<"${samples[$2]}" | grep .) |
    awk '$1 != "" && $2 > 0 {print $1 / $2}' | sort -g |
    awk '{r[NR] = $1} END {
      low = int((NR + 1) / 2 - 0.98 * sqrt(NR))
      if (low < 1) low = 1
      print NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2, r[low], r[NR + 1 - low]
    }'
}

# row TEXT OURS UNIT PEER_TEXT PEER OPERATOR TARGET: ours beside the peer's; OPERATOR "-" for information only. The median
# decides. "close" is a miss, too, but one of which these runs cannot be sure: the interval holds the target. A peer
# named ucx_NAME has another row for the UCX of --ucx, with the same target.
row() {
  row_of "$@"
  [ -z "$ucx_apart" ] || [[ $5 != ucx_* ]] || row_of "$1" "$2" "$3" "apart: $4" "apart_${5#ucx_}" "$6" "$7"
}
row_of() {
  local text=$1 unit=$3 peer_text=$4 operator=$6 target=$7 ours peers ratio low high verdict=
  ours=$(median "$2")
  peers=$(median "$5")
  if [ "$peers" = - ] || [ "$ours" = - ]; then
    printf '%-34s %8s %-5s %-30s %s\n' "$text" "$ours" "$unit" "$peer_text" "no figure"
    [ "$operator" = - ] || missed=$((missed + 1))
    return
  fi
  read -r ratio low high <<<"$(ratios "$2" "$5")"
  if [ "$operator" != - ]; then
    verdict=$(awk -v r="$ratio" -v l="$low" -v h="$high" -v t="$target" -v o="$operator" 'BEGIN {
      if (o == "<=") print (r <= t ? "met" : l <= t ? "close" : "MISSED")
      else print (r >= t ? "met" : h >= t ? "close" : "MISSED")
    }')
    [ "$verdict" = met ] || missed=$((missed + 1))
    [ "$verdict" != close ] || close=$((close + 1))
    verdict="$operator $target  $verdict"
  fi
  printf '%-34s %8.2f %-5s %-30s %8.2f %7.3f %6.3f-%-7.3f %s\n' "$text" "$ours" "$unit" "$peer_text" "$peers" \
    "$ratio" "$low" "$high" "$verdict"
}

table_head() {
  printf '\n%-34s %8s %-5s %-30s %8s %7s %-14s %s\n' "medians of $runs" anydat "" "compared with" "" ratio "  95 %" target
}

# conclude: says how many targets were missed; its status is that of the script.
conclude() {
  [ $missed -eq 0 ] && return 0
  say "$missed target(s) missed, $close of them so closely that these runs cannot be sure"
  ! $require
}
