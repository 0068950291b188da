#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# anydat beside its peers on one host: latency, rate and bandwidth of Sends over shared memory, what an SRQ costs, RDMA
# Writes and Reads, what blocking costs, and what doing nothing costs.
#
# Absolute figures drift between machines and within the hour, so each run measures the product and its peer in turn,
# on the same two processors, and the table shows medians over the runs and their ratio. The peer's messages are one
# buffer sent again and again and mostly not read; ours are many buffers, each written by its sender and read by its
# receiver. Buffers of both lie on huge pages where the system gives them. RDMA Writes of ours come from memory that the
# writer has just touched, and what Reads bring is looked at.
#
# UCX has two ways for RDMA. Memory that it allocated itself is mapped by both processes; for any other, such as malloc's,
# each operation is a message that the other process must answer, which ucx_perftest's does at leisure. Ours is such other
# memory.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"

usage() {
  cat <<END
Usage: bench/compare-shm.sh [--runs N] [--quick] [--require] [--cpus A,B] [--build DIR]
  --runs N     measure everything N times and take medians (default 5; at least 5 for figures to be quoted)
  --quick      3 short runs, to see that it works
  --require    exit with 1 if a target ratio is missed
  --cpus A,B   the two processors to use (default 0,1: server, client)
  --build DIR  use the programs of this build (default: build/compare, brought up to date first)
Example: bench/compare-shm.sh --runs 7 --require
END
}

runs=5 quick=false require=false cpus=0,1 build=
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=${2:?} && shift ;;
    --quick) quick=true runs=3 ;;
    --require) require=true ;;
    --cpus) cpus=${2:?} && shift ;;
    --build) build=$(realpath "${2:?}") && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
server_cpu=${cpus%,*} client_cpu=${cpus#*,}
[ "$(nproc)" -ge 2 ] || die "this needs two processors"

need_packages ucx-utils libfabric-bin
if [ -z "$build" ]; then
  build=build/compare
  need_packages "${build_packages[@]}"
  mkdir -p "$build"
  quietly "$build/configure.log" cmake --preset release -B "$build" -DANYDAT_TESTS=OFF
  quietly "$build/build.log" cmake --build "$build" --target datperf datping wake_roundtrip
fi
for program in datperf datping bench/wake_roundtrip; do
  [ -x "$build/bin/$program" ] || die "$build/bin/$program is not there"
done

work=$(mktemp -d)
background=()
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

# ---- One measurement each: prints one number ----

# product METRIC KEY ARGUMENT...: one run of datperf over shared memory.
product() {
  local metric=$1 key=$2
  shift 2
  timeout 300 "$build/bin/datperf" "$metric" --wire shm --cpus "$server_cpu,$client_cpu" --json "$@" >"$work/product" ||
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

# ucx TEST SIZE ITERATIONS COLUMN: one run of ucx_perftest. Its last line has eight columns with -f: iterations; the
# 50th percentile, average and overall latency or overhead in microseconds; average and overall MB/s (of 2^20 bytes);
# average and overall messages a second.
ucx() {
  local test=$1 size=$2 iterations=$3 column=$4 port warm_up
  port=$(free_port)
  warm_up=$((iterations / 10))
  export UCX_TLS=${ucx_transports:-self,sm} UCX_ALLOC_PRIO=${ucx_memory:-md:sysv,md:posix,huge,thp,md:*,mmap,heap}
  timeout 300 ucx_perftest -p "$port" -c "$server_cpu" >/dev/null 2>&1 &
  local server=$!
  await_listener "$port" || die "ucx_perftest did not start to listen"
  timeout 300 ucx_perftest 127.0.0.1 -p "$port" -t "$test" -s "$size" -n "$iterations" -w "$warm_up" \
    -c "$client_cpu" -f >"$work/ucx" 2>&1 || die "ucx_perftest -t $test -s $size failed: $(tail -n 1 "$work/ucx")"
  wait "$server" || true
  awk -v column="$column" 'NF == 8 && $1 ~ /^[0-9]+$/ {value = $column} END {print value}' "$work/ucx"
}
ucx_latency_ns() { ucx tag_lat "$1" "$2" 2 | awk '{print $1 * 1000}'; }
ucx_rate_mmsgs() { ucx tag_bw "$1" "$2" 8 | awk '{print $1 / 1e6}'; }
ucx_mapped() { ucx_transports=self,posix,sysv "$@"; }
ucx_heap() { ucx_transports=self,posix,cma ucx_memory=heap "$@"; }
ucx_put_ns() { ucx ucp_put_lat "$1" "$2" 2 | awk '{print $1 * 1000}'; }
ucx_put_gb() { ucx ucp_put_bw "$1" "$2" 6 | awk '{print $1 * 1048576 / 1e9}'; }
ucx_get_gb() { ucx ucp_get "$1" "$2" 6 | awk '{print $1 * 1048576 / 1e9}'; }
ucx_bandwidth_gb() { ucx tag_bw "$1" "$2" 6 | awk '{print $1 * 1048576 / 1e9}'; }

# libfabric's pingpong reports microseconds for each transfer, which is half a round trip. Not every machine lets its
# shared memory provider work; then there is no number.
fabric_latency_ns() {
  local size=$1 iterations=$2 port
  port=$(free_port)
  taskset -c "$server_cpu" timeout 120 fi_pingpong -p shm -e rdm -S "$size" -I "$iterations" -B "$port" >/dev/null 2>&1 &
  local server=$!
  if await_listener "$port"; then
    taskset -c "$client_cpu" timeout 120 fi_pingpong -p shm -e rdm -S "$size" -I "$iterations" -P "$port" 127.0.0.1 2>/dev/null |
      awk '$1 ~ /^[0-9]/ {value = $7 * 1000} END {print value}' || true
  fi
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
}

bare_wake_ns() { # the cheaper of eventfd and futex
  "$build/bin/bench/wake_roundtrip" --iters "$1" --cpus "$server_cpu,$client_cpu" |
    awk '{if (!best || $3 < best) best = $3} END {print best}'
}

# cpu_ns PID...: processor time these processes and all their threads have used.
cpu_ns() {
  local pid
  for pid in "$@"; do cat /proc/"$pid"/task/*/schedstat 2>/dev/null; done | awk '{sum += $1} END {printf "%.0f\n", sum}'
}

# idle_us_per_s SECONDS PID...: processor microseconds that these processes use in a second.
idle_us_per_s() {
  local seconds=$1 before after
  shift
  before=$(cpu_ns "$@")
  sleep "$seconds"
  after=$(cpu_ns "$@")
  awk -v b="$before" -v a="$after" -v s="$seconds" 'BEGIN {print (a - b) / s / 1000}'
}

# ---- All runs, alternating ----

lat_iters=200000 page_iters=100000 rate_iters=5000000 bw64_iters=50000 bw1m_iters=4000 wake_iters=20000 idle_s=5
bw4m_iters=1000 slow_iters=300
if $quick; then
  lat_iters=50000 page_iters=20000 rate_iters=1000000 bw64_iters=8000 bw1m_iters=800 wake_iters=3000 idle_s=2
  bw4m_iters=200 slow_iters=100
fi

declare -A samples # name -> numbers
note() { samples[$1]+=" ${2:-}"; }

say "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), processors $server_cpu and $client_cpu, Linux $(uname -r)"
say "$(ucx_info -v 2>/dev/null | sed -nE 's/^# (Library v|V)ersion:? /UCX /p' || true); $(fi_info --version 2>/dev/null | sed -n 's/^libfabric: /libfabric /p')"
for ((run = 1; run <= runs; ++run)); do
  say "run $run of $runs ..." >&2
  note lat8 "$(product lat median_ns --size 8 --iters $lat_iters --srq)"
  note ucx_lat8 "$(ucx_latency_ns 8 $lat_iters)"
  note plain_lat8 "$(product lat median_ns --size 8 --iters $lat_iters)"
  note fabric_lat8 "$(fabric_latency_ns 8 $lat_iters)"
  note lat4k "$(product lat median_ns --size 4096 --iters $page_iters --srq)"
  note ucx_lat4k "$(ucx_latency_ns 4096 $page_iters)"
  note plain_lat4k "$(product lat median_ns --size 4096 --iters $page_iters)"
  note rate8 "$(product rate mmsgs_per_s --size 8 --iters $rate_iters --srq)"
  note ucx_rate8 "$(ucx_rate_mmsgs 8 $rate_iters)"
  note plain_rate8 "$(product rate mmsgs_per_s --size 8 --iters $rate_iters)"
  note bw64k "$(product bw gbytes_per_s --size 65536 --iters $bw64_iters --srq)"
  note ucx_bw64k "$(ucx_bandwidth_gb 65536 $bw64_iters)"
  note bw1m "$(product bw gbytes_per_s --size 1048576 --iters $bw1m_iters --srq)"
  note ucx_bw1m "$(ucx_bandwidth_gb 1048576 $bw1m_iters)"
  note write8 "$(product lat median_ns --op write --mem shareable --size 8 --iters $lat_iters)"
  note ucx_write8 "$(ucx_mapped ucx_put_ns 8 $lat_iters)"
  for case in 65536:$bw64_iters 1048576:$bw1m_iters 4194304:$bw4m_iters; do
    size=${case%:*} iters=${case#*:}
    note "write$size" "$(product bw gbytes_per_s --op write --mem shareable --size "$size" --iters "$iters")"
    note "ucx_write$size" "$(ucx_mapped ucx_put_gb "$size" "$iters")"
    note "read$size" "$(product bw gbytes_per_s --op read --mem shareable --size "$size" --iters "$iters")"
    note "ucx_read$size" "$(ucx_mapped ucx_get_gb "$size" "$iters")"
  done
  note write_heap "$(product bw gbytes_per_s --op write --size 1048576 --iters $bw1m_iters)"
  note read_heap "$(product bw gbytes_per_s --op read --size 1048576 --iters $bw1m_iters)"
  note ucx_write_heap "$(ucx_heap ucx_put_gb 1048576 $slow_iters)"
  note ucx_read_heap "$(ucx_heap ucx_get_gb 1048576 $slow_iters)"
  note block8 "$(product lat median_ns --size 8 --iters $wake_iters --srq --wait block)"
  note wake "$(bare_wake_ns $wake_iters)"
done

"$build/bin/datperf" serve --qual 0 >/dev/null &
background+=($!)
sleep 1
idle_server=$(idle_us_per_s $idle_s "${background[0]}")
"$build/bin/datping" --count 2 --interval $((idle_s + 3)) --srq >/dev/null &
background+=($!)
sleep 1.5
# shellcheck disable=SC2046  # one word for each process
idle_connected=$(idle_us_per_s $idle_s "${background[1]}" $(cat /proc/"${background[1]}"/task/*/children))

# ---- The table ----

missed=0
median() { # of the numbers of one name; "-" if there are none
  tr ' ' '\n' <<<"${samples[$1]}" | grep . | sort -g |
    awk '{v[NR] = $1} END {if (!NR) print "-"; else print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}' || true
}

# row TEXT OURS UNIT PEER_TEXT PEER OPERATOR TARGET: ours divided by the peer's; OPERATOR "-" for information only.
row() {
  local text=$1 unit=$3 peer_text=$4 operator=$6 target=$7 ours peers ratio verdict=
  ours=$(median "$2")
  peers=$(median "$5")
  if [ "$peers" = - ] || [ "$ours" = - ]; then
    printf '%-34s %10s %-6s %-22s %10s\n' "$text" "$ours" "$unit" "$peer_text" "no figure"
    [ "$operator" = - ] || missed=$((missed + 1))
    return
  fi
  ratio=$(awk -v a="$ours" -v b="$peers" 'BEGIN {printf "%.3f", a / b}')
  if [ "$operator" != - ]; then
    verdict="$operator $target"
    if awk -v r="$ratio" -v t="$target" -v o="$operator" 'BEGIN {exit !(o == "<=" ? r <= t : r >= t)}'; then
      verdict+="  met"
    else
      verdict+="  MISSED"
      missed=$((missed + 1))
    fi
  fi
  printf '%-34s %10.2f %-6s %-22s %10.2f %8.2f  %s\n' "$text" "$ours" "$unit" "$peer_text" "$peers" "$ratio" "$verdict"
}

printf '\n%-34s %10s %-6s %-22s %10s %8s  %s\n' "medians of $runs" anydat "" "compared with" "" ratio target
row 'latency 8 B, SRQ' lat8 ns 'ucx_perftest tag_lat' ucx_lat8 '<=' 0.9
row 'latency 4 KiB, SRQ' lat4k ns 'ucx_perftest tag_lat' ucx_lat4k '<=' 0.9
row 'rate 8 B, SRQ' rate8 M/s 'ucx_perftest tag_bw' ucx_rate8 '>=' 1.5
row 'bandwidth 64 KiB, SRQ' bw64k GB/s 'ucx_perftest tag_bw' ucx_bw64k '>=' 1.3
row 'bandwidth 1 MiB, SRQ' bw1m GB/s 'ucx_perftest tag_bw' ucx_bw1m '>=' 1.3
row 'latency 8 B, SRQ' lat8 ns 'without SRQ' plain_lat8 '<=' 1.10
row 'latency 4 KiB, SRQ' lat4k ns 'without SRQ' plain_lat4k '<=' 1.10
row 'rate 8 B, SRQ' rate8 M/s 'without SRQ' plain_rate8 - 0
row 'RDMA Write 8 B, half round trip' write8 ns 'ucp_put_lat, mapped' ucx_write8 '<=' 1.0
for size in 65536 1048576 4194304; do
  kib="$((size / 1024)) KiB"
  row "RDMA Write $kib, shareable" "write$size" GB/s 'ucp_put_bw, mapped' "ucx_write$size" '>=' 1.0
  row "RDMA Read $kib, shareable" "read$size" GB/s 'ucp_get, mapped' "ucx_read$size" '>=' 1.0
done
row 'RDMA Write 1024 KiB' write_heap GB/s 'ucp_put_bw, heap' ucx_write_heap '>=' 1.0
row 'RDMA Read 1024 KiB' read_heap GB/s 'ucp_get, heap' ucx_read_heap '>=' 1.0
row 'latency 8 B, SRQ, blocking' block8 ns 'bare eventfd or futex' wake '<=' 1.3
row 'latency 8 B, SRQ' lat8 ns 'fi_pingpong shm' fabric_lat8 - 0
printf '%-34s %10.1f %-6s\n' 'idle server, processor time' "$idle_server" us/s
printf '%-34s %10.1f %-6s\n' 'idle connection, both ends' "$idle_connected" us/s

if [ $missed -gt 0 ]; then
  say "$missed target(s) missed"
  if $require; then exit 1; fi
fi
