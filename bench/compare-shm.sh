#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# anydat beside its peers on one host: latency, rate and bandwidth of Sends over shared memory, what an SRQ costs, RDMA
# Writes and Reads, what blocking costs, and what doing nothing costs; and beside all of it what the machine allows
# (bench/floor), measured in the same run.
#
# compare-lib.sh says how it is measured. The peer's messages are one buffer sent again and again and mostly not read;
# ours are many buffers, each written by its sender and read by its receiver. Buffers of both lie on huge pages where the
# system gives them. In a stream of large RDMA of ours, one operation in 64 or 128 asks for its completion, is written
# anew before and looked at after; the peer looks at none. RDMA is measured five times in each run.
#
# UCX has two ways for RDMA. Memory that it allocated itself is mapped by both processes; for any other, such as malloc's,
# each operation is a message that the other process must answer, which ucx_perftest's does at leisure. Ours is such other
# memory.
set -euo pipefail
. "$(dirname "$0")/compare-lib.sh"

wire=shm ucx_transports=self,sm
have_programs datperf datping wake_roundtrip floor

ucx_mapped() { ucx_transports=self,posix,sysv "$@"; }
ucx_heap() { ucx_transports=self,posix,cma ucx_memory=heap "$@"; }
ucx_put_ns() { ucx ucp_put_lat "$1" "$2" 2 | awk '{print $1 * 1000}'; }
ucx_put_gb() { ucx ucp_put_bw "$1" "$2" 6 | awk '{print $1 * 1048576 / 1e9}'; }
ucx_get_gb() { ucx ucp_get "$1" "$2" 6 | awk '{print $1 * 1048576 / 1e9}'; }

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
bw4m_iters=1000 slow_iters=300 rdma_times=5
if $quick; then
  lat_iters=50000 page_iters=20000 rate_iters=1000000 bw64_iters=8000 bw1m_iters=800 wake_iters=3000 idle_s=2
  bw4m_iters=200 slow_iters=100 rdma_times=1
fi

say_versions
for ((run = 1; run <= runs; ++run)); do
  say "run $run of $runs ..." >&2
  floor '^(ring|stripped|two_copies)_'
  for size in 8 4096; do
    note_floor "lat$size" "ring_lat_$size"
    note_floor "stripped_lat$size" "stripped_lat_$size"
  done
  note_floor rate8 ring_rate_8
  note_floor stripped_rate8 stripped_rate_8
  for buffers in one many; do
    note_floor "bw64k_$buffers" "two_copies_65536_$buffers"
    note_floor "bw1m_$buffers" "two_copies_1048576_$buffers"
  done
  note lat8 "$(product lat median_ns --size 8 --iters $lat_iters --srq)"
  note_ucx lat8 ucx_latency_ns 8 $lat_iters
  note plain_lat8 "$(product lat median_ns --size 8 --iters $lat_iters)"
  note fabric_lat8 "$(fabric_latency_ns shm rdm 8 $lat_iters)"
  note lat4k "$(product lat median_ns --size 4096 --iters $page_iters --srq)"
  note_ucx lat4k ucx_latency_ns 4096 $page_iters
  note plain_lat4k "$(product lat median_ns --size 4096 --iters $page_iters)"
  note rate8 "$(product rate mmsgs_per_s --size 8 --iters $rate_iters --srq)"
  note_ucx rate8 ucx_rate_mmsgs 8 $rate_iters
  note plain_rate8 "$(product rate mmsgs_per_s --size 8 --iters $rate_iters)"
  note bw64k "$(product bw gbytes_per_s --size 65536 --iters $bw64_iters --srq)"
  note_ucx bw64k ucx_bandwidth_gb 65536 $bw64_iters
  note bw1m "$(product bw gbytes_per_s --size 1048576 --iters $bw1m_iters --srq)"
  note_ucx bw1m ucx_bandwidth_gb 1048576 $bw1m_iters
  # One buffer at either end, as the peer has it.
  note bw64k_one "$(product bw gbytes_per_s --size 65536 --iters $bw64_iters --srq --slots 1)"
  note bw1m_one "$(product bw gbytes_per_s --size 1048576 --iters $bw1m_iters --srq --slots 1)"
  for ((time = 1; time <= rdma_times; ++time)); do # both are near what a copy allows, so that little tells them apart
    floor '^(write_lat_8|one_copy_.*_one)$'
    note_floor write8 write_lat_8
    for size in 65536 1048576; do note_floor "write$size" "one_copy_${size}_one"; done
    note write8 "$(product lat median_ns --op write --mem shareable --size 8 --iters $lat_iters)"
    note_ucx write8 ucx_mapped ucx_put_ns 8 $lat_iters
    for case in 65536:$bw64_iters 1048576:$bw1m_iters 4194304:$bw4m_iters; do
      size=${case%:*} iters=${case#*:}
      note "write$size" "$(product bw gbytes_per_s --op write --mem shareable --size "$size" --iters "$iters")"
      note_ucx "write$size" ucx_mapped ucx_put_gb "$size" "$iters"
      note "read$size" "$(product bw gbytes_per_s --op read --mem shareable --size "$size" --iters "$iters")"
      note_ucx "read$size" ucx_mapped ucx_get_gb "$size" "$iters"
    done
  done
  note write_heap "$(product bw gbytes_per_s --op write --size 1048576 --iters $bw1m_iters)"
  note read_heap "$(product bw gbytes_per_s --op read --size 1048576 --iters $bw1m_iters)"
  note_ucx write_heap ucx_heap ucx_put_gb 1048576 $slow_iters
  note_ucx read_heap ucx_heap ucx_get_gb 1048576 $slow_iters
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

table_head
row 'latency 8 B, SRQ' lat8 ns 'ucx_perftest tag_lat' ucx_lat8 '<=' 0.9
row 'latency 4 KiB, SRQ' lat4k ns 'ucx_perftest tag_lat' ucx_lat4k '<=' 0.9
row 'rate 8 B, SRQ' rate8 M/s 'ucx_perftest tag_bw' ucx_rate8 '>=' 1.5
row 'bandwidth 64 KiB, SRQ' bw64k GB/s 'ucx_perftest tag_bw' ucx_bw64k '>=' 1.3
row 'bandwidth 1 MiB, SRQ' bw1m GB/s 'ucx_perftest tag_bw' ucx_bw1m '>=' 1.3
row 'bandwidth 64 KiB, SRQ, one buffer' bw64k_one GB/s 'ucx_perftest tag_bw' ucx_bw64k - 0
row 'bandwidth 1 MiB, SRQ, one buffer' bw1m_one GB/s 'ucx_perftest tag_bw' ucx_bw1m - 0
row 'latency 8 B, SRQ' lat8 ns 'floor: stripped way' floor_stripped_lat8 - 0
row 'latency 8 B, SRQ' lat8 ns 'floor: ring' floor_lat8 - 0
row 'latency 4 KiB, SRQ' lat4k ns 'floor: stripped way' floor_stripped_lat4096 - 0
row 'latency 4 KiB, SRQ' lat4k ns 'floor: ring' floor_lat4096 - 0
row 'rate 8 B, SRQ' rate8 M/s 'floor: stripped way' floor_stripped_rate8 - 0
row 'rate 8 B, SRQ' rate8 M/s 'floor: ring' floor_rate8 - 0
for size in 64k 1m; do
  row "bandwidth $size, SRQ, one buffer" "bw${size}_one" GB/s 'floor: two copies, one' "floor_bw${size}_one" - 0
  row "bandwidth $size, SRQ" "bw$size" GB/s 'floor: two copies, many' "floor_bw${size}_many" - 0
done
row 'latency 8 B, SRQ' lat8 ns 'without SRQ' plain_lat8 '<=' 1.10
row 'latency 4 KiB, SRQ' lat4k ns 'without SRQ' plain_lat4k '<=' 1.10
row 'rate 8 B, SRQ' rate8 M/s 'without SRQ' plain_rate8 - 0
row 'RDMA Write 8 B, half round trip' write8 ns 'ucp_put_lat, mapped' ucx_write8 '<=' 1.0
row 'RDMA Write 8 B, half round trip' write8 ns 'floor: store' floor_write8 - 0
for size in 65536 1048576; do
  row "RDMA Write $((size / 1024)) KiB, shareable" "write$size" GB/s 'floor: one copy' "floor_write$size" - 0
done
for size in 65536 1048576 4194304; do
  kib="$((size / 1024)) KiB"
  row "RDMA Write $kib, shareable" "write$size" GB/s 'ucp_put_bw, mapped' "ucx_write$size" '>=' 1.0
  row "RDMA Read $kib, shareable" "read$size" GB/s 'ucp_get, mapped' "ucx_read$size" '>=' 1.0
done
row 'RDMA Write 1024 KiB' write_heap GB/s 'ucp_put_bw, heap' ucx_write_heap '>=' 1.0
row 'RDMA Read 1024 KiB' read_heap GB/s 'ucp_get, heap' ucx_read_heap '>=' 1.0
row 'latency 8 B, SRQ, blocking' block8 ns 'bare eventfd or futex' wake '<=' 1.3
row 'latency 8 B, SRQ' lat8 ns 'fi_pingpong shm' fabric_lat8 - 0
printf '%-34s %8.1f %-5s\n' 'idle server, processor time' "$idle_server" us/s
printf '%-34s %8.1f %-5s\n' 'idle connection, both ends' "$idle_connected" us/s

conclude
