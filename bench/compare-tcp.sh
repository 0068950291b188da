#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# anydat beside bare TCP and beside its peers over TCP, on the loopback device: latency, bandwidth and rate of Sends, with
# CRCs and without.
#
# compare-lib.sh says how it is measured. Bare TCP (raw_tcp.cc) has as many buffers as ours and looks at nothing that
# arrives; bench/floor has the same in its own run of figures. Each of ours is written by its sender and read by its receiver. MPA's CRC is a sum over every byte at either
# end; no peer here has one.
set -euo pipefail
. "$(dirname "$0")/compare-lib.sh"

# shellcheck disable=SC2034  # used by compare-lib.sh
wire=tcp ucx_transports=self,tcp
have_programs datperf raw_tcp floor

raw() { # raw METRIC KEY ARGUMENT...: one run of raw_tcp
  local metric=$1 key=$2
  shift 2
  timeout 300 "$build/bin/bench/raw_tcp" "$metric" --cpus "$server_cpu,$client_cpu" "$@" >"$work/raw" ||
    die "raw_tcp $metric $* failed"
  sed -n "s/.* $key \([0-9.]*\).*/\1/p" "$work/raw"
}
with_crc() { DAT_CRC=on "$@"; }
without_crc() { DAT_CRC=off "$@"; }

lat_iters=40000 rate_iters=5000000 ucx_rate_iters=200000 bw64_iters=40000 bw1m_iters=6000
if $quick; then
  lat_iters=10000 rate_iters=1000000 ucx_rate_iters=50000 bw64_iters=8000 bw1m_iters=1500
fi

say_versions
for ((run = 1; run <= runs; ++run)); do
  say "run $run of $runs ..." >&2
  floor '^(tcp|wake)_'
  note_floor lat8 tcp_lat_8
  note_floor rate8 tcp_rate_8
  note_floor bw64k tcp_bw_65536
  note_floor bw1m tcp_bw_1048576
  note_floor wake wake_futex
  note lat8 "$(without_crc product lat median_ns --size 8 --iters $lat_iters --srq)"
  note raw_lat8 "$(raw lat median_ns --size 8 --iters $lat_iters)"
  note crc_lat8 "$(with_crc product lat median_ns --size 8 --iters $lat_iters --srq)"
  note_ucx lat8 ucx_latency_ns 8 $lat_iters
  note fabric_lat8 "$(fabric_latency_ns tcp msg 8 $lat_iters)"
  note bw1m "$(without_crc product bw gbytes_per_s --size 1MiB --iters $bw1m_iters --srq)"
  note crc_bw1m "$(with_crc product bw gbytes_per_s --size 1MiB --iters $bw1m_iters --srq)"
  note raw_bw1m "$(raw bw gbytes_per_s --size 1MiB --buffers 4 --iters $bw1m_iters)"
  note_ucx bw1m ucx_bandwidth_gb 1048576 $bw1m_iters
  note bw64k "$(without_crc product bw gbytes_per_s --size 64KiB --iters $bw64_iters --srq)"
  note raw_bw64k "$(raw bw gbytes_per_s --size 64KiB --buffers 16 --iters $bw64_iters)"
  note crc_bw64k "$(with_crc product bw gbytes_per_s --size 64KiB --iters $bw64_iters --srq)"
  note rate8 "$(without_crc product rate mmsgs_per_s --size 8 --iters $rate_iters --srq)"
  note raw_rate8 "$(raw rate mmsgs_per_s --size 8 --batch 64 --iters $rate_iters)"
  note crc_rate8 "$(with_crc product rate mmsgs_per_s --size 8 --iters $rate_iters --srq)"
  note_ucx rate8 ucx_rate_mmsgs 8 $ucx_rate_iters
done

table_head
row 'latency 8 B' lat8 ns 'raw_tcp' raw_lat8 '<=' 1.10
row 'latency 8 B, CRC' crc_lat8 ns 'raw_tcp' raw_lat8 '<=' 1.10
for variant in lat8: crc_lat8:', CRC'; do
  row "latency 8 B${variant#*:}" "${variant%:*}" ns 'ucx_perftest tag_lat' ucx_lat8 '<=' 1.0
  row "latency 8 B${variant#*:}" "${variant%:*}" ns 'fi_pingpong tcp' fabric_lat8 '<=' 1.0
done
row 'bandwidth 1 MiB' bw1m GB/s 'raw_tcp' raw_bw1m '>=' 0.90
row 'bandwidth 1 MiB, CRC' crc_bw1m GB/s 'raw_tcp' raw_bw1m '>=' 0.60
row 'bandwidth 1 MiB' bw1m GB/s 'ucx_perftest tag_bw' ucx_bw1m - 0
row 'bandwidth 64 KiB' bw64k GB/s 'raw_tcp' raw_bw64k - 0
row 'bandwidth 64 KiB, CRC' crc_bw64k GB/s 'raw_tcp' raw_bw64k - 0
row 'rate 8 B' rate8 M/s 'ucx_perftest tag_bw' ucx_rate8 '>=' 20
row 'rate 8 B, CRC' crc_rate8 M/s 'ucx_perftest tag_bw' ucx_rate8 '>=' 20
row 'rate 8 B' rate8 M/s 'raw_tcp, 64 in a write' raw_rate8 - 0
row 'latency 8 B' lat8 ns 'floor: TCP' floor_lat8 - 0
row 'latency 8 B' lat8 ns 'floor: wake-up by a futex' floor_wake - 0
row 'rate 8 B' rate8 M/s 'floor: TCP' floor_rate8 - 0
row 'bandwidth 64 KiB' bw64k GB/s 'floor: TCP' floor_bw64k - 0
row 'bandwidth 1 MiB' bw1m GB/s 'floor: TCP' floor_bw1m - 0
conclude
