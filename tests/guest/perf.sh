# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side: datperf beside perftest on one device, in turn, and the medians. The processor is emulated, so only the
# ratios mean anything.
device=${DEVICE:-rxe0} rounds=${ROUNDS:-5}
here() { [ "$device" = rxe0 ] && echo "-x 1" || echo "-R"; }
address=$(ip -o -4 addr show dev "$(cat /sys/class/infiniband/"$device"/ports/1/gid_attrs/ndevs/0)" | sed 's/.* inet \([0-9.]*\).*/\1/')

# perftest's own figure: typical latency in us, or average bandwidth in MB/s (2^20).
perftest() { # PROGRAM COLUMN OPTION...
  local program=$1 column=$2 pid
  shift 2
  # shellcheck disable=SC2046
  timeout 100 "$program" -d "$device" $(here) -F "$@" > /tmp/server 2>&1 &
  pid=$!
  until netstat -ltn | grep -q ':18515 ' || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
  # shellcheck disable=SC2046
  timeout 100 "$program" -d "$device" $(here) -F "$@" "$address" > /tmp/out 2>&1
  wait $pid
  awk -v c="$column" '/#bytes/ {getline; print $c; exit}' /tmp/out
}
# datperf's: median half round trip in us, or MB/s (2^20).
datperf_of() { # METRIC KEY OPTION...
  local metric=$1 key=$2 value
  shift 2
  value=$(timeout 100 datperf "$metric" --ia "verbs-$device" --json "$@" | sed "s/.*\"$key\":\([0-9.e+-]*\).*/\1/")
  awk -v v="$value" -v k="$key" 'BEGIN {printf "%.2f\n", k == "median_ns" ? v / 1000 : v * 1e9 / 1048576}'
}
median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# measured COMMAND...: what it prints, or, where a run came to nothing, what the next one does.
measured() {
  local tries value=0
  for tries in 1 2 3; do
    value=$("$@")
    if awk -v v="$value" 'BEGIN {exit !(v > 0)}'; then break; fi
    echo "run $tries of $* came to nothing" >&2
  done
  echo "$value"
}

# compare NAME UNIT BETTER COMMAND-OF-PERFTEST -- COMMAND-OF-DATPERF
compare() {
  local name=$1 unit=$2 theirs=() ours=() i
  shift 2
  while [ "$1" != -- ]; do theirs+=("$1"); shift; done; shift
  ours=("$@")
  : > /tmp/theirs; : > /tmp/ours
  for i in $(seq "$rounds"); do
    measured perftest "${theirs[@]}" >> /tmp/theirs
    measured datperf_of "${ours[@]}" >> /tmp/ours
  done
  # How fast the machine emulates may change from one minute to the next, and not from one run to its neighbour.
  printf '%-22s %-6s perftest %9.2f   datperf %9.2f   ratio %.2f, of neighbours %.2f   (%s | %s)\n' "$name" "$unit" \
    "$(median < /tmp/theirs)" "$(median < /tmp/ours)" \
    "$(awk -v a="$(median < /tmp/ours)" -v b="$(median < /tmp/theirs)" 'BEGIN {print a / b}')" \
    "$(paste /tmp/ours /tmp/theirs | awk '{print $1 / $2}' | median)" "$(paste -sd' ' /tmp/theirs)" "$(paste -sd' ' /tmp/ours)"
}

echo "device $device at $address, $rounds rounds, medians, and the median of the ratios of neighbouring runs; in brackets all values"
compare "Send latency 64 B" us ib_send_lat 5 -s 64 -n 2000 -- lat median_ns --size 64 --iters 2000
compare "Write latency 64 B" us ib_write_lat 5 -s 64 -n 2000 -- lat median_ns --op write --size 64 --iters 2000
compare "Send bandwidth 64 KiB" MB/s ib_send_bw 4 -s 65536 -n 400 -Q 1 -- bw gbytes_per_s --size 64KiB --iters 400
# The target of perftest's Writes sleeps until they are over. One that polled would take the processor that carries the
# packets, so ours blocks.
compare "Write bandwidth 64 KiB" MB/s ib_write_bw 4 -s 65536 -n 400 -Q 1 -- bw gbytes_per_s --op write --size 64KiB --iters 400 --wait block
compare "Send bandwidth 4 KiB" MB/s ib_send_bw 4 -s 4096 -n 10000 -Q 1 -- bw gbytes_per_s --size 4KiB --iters 10000
compare "Write bandwidth 4 KiB" MB/s ib_write_bw 4 -s 4096 -n 10000 -Q 1 -- bw gbytes_per_s --op write --size 4KiB --iters 10000 --wait block
