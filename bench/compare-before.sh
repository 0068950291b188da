#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The library of this tree beside that of an earlier build: the product's own figures of compare-shm.sh and compare-tcp.sh,
# both in turn, and both measured by the earlier program, which may do less for each message than this tree's. For a
# change that must not cost speed.
set -euo pipefail

help() {
  cat <<END
Usage: bench/compare-before.sh BEFORE [--only PATTERN] [OPTIONS]
  BEFORE          the build folder of the earlier version; its bin/datperf is run with both libraries
  --only PATTERN  only the rows whose text matches this regular expression
Further OPTIONS:
END
}

only=.
case ${1:-} in
  '' | -*)
    help
    set -- --help
    ;;
  *)
    [ -x "$1/bin/datperf" ] && [ -e "$1/src/libdat.so.1" ] || { echo "${0##*/}: $1 has no bin/datperf or no src/libdat.so.1" >&2 && exit 2; }
    before=$(realpath "$1") && shift
    if [ "${1:-}" = --only ]; then only=${2:?} && shift 2; fi
    ;;
esac
. "$(dirname "$0")/compare-lib.sh"
have_programs datperf
[ -e "$build/src/libdat.so.1" ] || { echo "${0##*/}: $build has no src/libdat.so.1" >&2 && exit 2; }

# note_both KEY METRIC WIRE ARGUMENT...: one run with each library, next to each other.
note_both() {
  local name=$1 key=$2 metric=$3 now=$build
  # shellcheck disable=SC2034  # used by product()
  wire=$4
  shift 4
  build=$before
  note "$name" "$(LD_LIBRARY_PATH=$now/src product "$metric" "$key" "$@")"
  note "before_$name" "$(LD_LIBRARY_PATH=$before/src product "$metric" "$key" "$@")"
  build=$now
}

# Text; key of the figure; metric, wire and options of datperf; iterations, of a quick run.
rows=(
  'shm, latency 8 B, SRQ;median_ns;lat shm --size 8 --srq;200000;50000'
  'shm, latency 8 B;median_ns;lat shm --size 8;200000;50000'
  'shm, latency 4 KiB, SRQ;median_ns;lat shm --size 4096 --srq;100000;20000'
  'shm, rate 8 B, SRQ;mmsgs_per_s;rate shm --size 8 --srq;5000000;1000000'
  'shm, rate 8 B;mmsgs_per_s;rate shm --size 8;5000000;1000000'
  'shm, bandwidth 64 KiB, SRQ;gbytes_per_s;bw shm --size 65536 --srq;50000;8000'
  'shm, bandwidth 1 MiB, SRQ;gbytes_per_s;bw shm --size 1048576 --srq;4000;800'
  'shm, RDMA Write 8 B, shareable;median_ns;lat shm --op write --mem shareable --size 8;200000;50000'
  'shm, RDMA Write 64 KiB, shareable;gbytes_per_s;bw shm --op write --mem shareable --size 65536;50000;8000'
  'shm, RDMA Write 1 MiB, shareable;gbytes_per_s;bw shm --op write --mem shareable --size 1048576;4000;800'
  'shm, RDMA Read 1 MiB, shareable;gbytes_per_s;bw shm --op read --mem shareable --size 1048576;4000;800'
  'shm, RDMA Write 1 MiB;gbytes_per_s;bw shm --op write --size 1048576;4000;800'
  'shm, RDMA Read 1 MiB;gbytes_per_s;bw shm --op read --size 1048576;4000;800'
  'shm, latency 8 B, SRQ, blocking;median_ns;lat shm --size 8 --srq --wait block;20000;3000'
  'TCP, latency 8 B, SRQ;median_ns;lat tcp --size 8 --srq;40000;10000'
  'TCP, rate 8 B, SRQ;mmsgs_per_s;rate tcp --size 8 --srq;5000000;1000000'
  'TCP, bandwidth 64 KiB, SRQ;gbytes_per_s;bw tcp --size 65536 --srq;40000;8000'
  'TCP, bandwidth 1 MiB, SRQ;gbytes_per_s;bw tcp --size 1048576 --srq;6000;1500'
)

for ((run = 1; run <= runs; ++run)); do
  say "run $run of $runs ..." >&2
  for row in "${rows[@]}"; do
    IFS=';' read -r text key arguments iterations quick_iterations <<<"$row"
    [[ $text =~ $only ]] || continue
    ! $quick || iterations=$quick_iterations
    # shellcheck disable=SC2086  # a word for each argument
    note_both "${text//[^A-Za-z0-9]/_}" "$key" $arguments --iters "$iterations"
  done
done

table_head
for row in "${rows[@]}"; do
  IFS=';' read -r text key _ <<<"$row"
  [[ $text =~ $only ]] || continue
  case $key in
    median_ns) unit=ns target='<= 1.03' ;;
    mmsgs_per_s) unit=M/s target='>= 0.97' ;;
    *) unit=GB/s target='>= 0.97' ;;
  esac
  name=${text//[^A-Za-z0-9]/_}
  row "$text" "$name" $unit before "before_$name" "${target% *}" "${target#* }"
done
conclude
