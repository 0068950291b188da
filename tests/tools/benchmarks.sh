#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of bench/, tiny: that they run and print what their readers look for.
. "$(dirname "$0")/lib.sh"

run 0 bench/wake_roundtrip --iters 50
says '^eventfd median_ns [0-9.]+ p99_ns [0-9.]+$'
says '^futex median_ns [0-9.]+ p99_ns [0-9.]+$'
say "the benchmarks run"
