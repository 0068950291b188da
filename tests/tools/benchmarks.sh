#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of bench/, tiny: that they run and print what their readers look for.
. "$(dirname "$0")/lib.sh"

run 0 bench/wake_roundtrip --iters 50
says '^eventfd median_ns [0-9.]+ p99_ns [0-9.]+$'
says '^futex median_ns [0-9.]+ p99_ns [0-9.]+$'
run 0 bench/raw_tcp lat --iters 50
says '^lat median_ns [0-9.]+ p99_ns [0-9.]+$'
run 0 bench/raw_tcp bw --iters 20 --buffers 3
says '^bw gbytes_per_s [0-9.]+$'
run 0 bench/raw_tcp rate --iters 5000
says '^rate mmsgs_per_s [0-9.]+$'
run 2 bench/raw_tcp lat --size 0
run 0 bench/floor --quick --json
for key in ring_lat_8 ring_lat_4096 ring_rate_8 two_copies_1048576_many one_copy_65536_one write_lat_8 stripped_rate_8 \
  wake_futex tcp_bw_65536; do
  awk -v f="$(json $key)" 'BEGIN {exit !(f > 0)}' || die "$key is '$(json $key)'"
done
run 0 bench/floor --quick --only '^ring_lat_8$'
says '^ring, 8 B +[0-9.]+ ns$'
run 1 bench/floor --only no-such-figure
complains "no figure has a name"
run 2 bench/floor --cpus 0
run 0 bench/idle_peers --peers 0,3 --rounds 1
says "^peers 3 dequeue_ns [0-9.]+ own_region_free_ns [0-9]+ open_region_free_ns [0-9]+$"
run 0 bench/region_costs --endpoints 0,20 --connected 0,2 --rounds 1
says "^endpoints 20 connected 2 lmr_create_ns [0-9]+ lmr_free_ns [0-9]+$"
run 0 bench/instructions --repetitions 1
says '^plain post_send 64 ok$'
says '^srq srq_post_recv 16 ok$'
says '^plain rdma_read 1 ok$'
say "the benchmarks run"
