#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A small message over TCP waits no longer beside a stream of RDMA Writes to the same adapter than three times what it waits
# beside the same stream to another one. Where one connection is read until it is empty the ratio is about a hundred.
. "$(dirname "$0")/lib.sh"

# The ratio of what is measured one right after the other. On a busy machine both are now and then a time slice, so of the
# rounds the lower quartile counts.
rounds=15
for ((round = 0; round < rounds; ++round)); do
  run 0 bench/beside_writes --sizes 65536 --rounds 1 --pings 60
  says '^writes 65536 .* ratio [0-9.]+$'
  sed 's/.* ratio //' "$work/out" >>"$work/ratios"
done
quartile=$(sort -g "$work/ratios" | sed -n "$((rounds / 4 + 1))p")
awk -v ratio="$quartile" 'BEGIN { exit !(ratio < 3) }' || die "the ratios are $(sort -g "$work/ratios" | tr '\n' ' ')"
say "beside a stream of Writes to the same adapter a message takes $quartile times what it takes beside one to another"
