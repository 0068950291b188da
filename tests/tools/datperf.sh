#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs that are too short to measure anything, but move and check what long ones do.
. "$(dirname "$0")/lib.sh"

number='^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$'
positive() { # KEY...: the value there is a number above 0
  local value
  value=$(json "$@")
  [[ $value =~ $number ]] && awk -v v="$value" 'BEGIN {exit !(v > 0)}' || die "$* is '$value'"
}

measure() { # METRIC OPTION...
  run 0 datperf "$@" --json
  case $1 in
    lat) positive median_ns && positive p999_ns ;;
    *) positive gbytes_per_s && positive mmsgs_per_s ;;
  esac
}

for metric in lat bw rate; do
  for options in '' '--srq' '--wait block' '--endpoints 3' '--srq --endpoints 3 --wait block'; do
    # shellcheck disable=SC2086  # several words, or none
    measure $metric --size 64 --iters 300 $options
  done
  for size in 1 9 8KiB 64KiB 1MiB; do measure $metric --size $size --iters 20; done
done
for op in write read; do
  for size in 1 2 8 9 4KiB 1MiB; do
    for metric in lat bw rate; do measure $metric --op $op --size $size --iters 40; done
  done
  measure rate --op $op --size 64 --iters 300 --endpoints 3 --srq --wait block
done
[ "$(json op)" = read ] || die "the JSON does not say what was measured"
measure lat --op write --size 8 --iters 2000 --endpoints 255 # a number of a byte returns with each round of them
measure bw --size 1MiB --iters 20
[ "$(json op)" = send ] && [ "$(json size_bytes)" = 1048576 ] || die "the JSON does not say what was measured"

for wire in shm tcp; do
  run 0 datperf many --endpoints 200 --clients 4 --iters 20000 --burst 3 --wire $wire --json
  for what in few many; do
    for key in connects_per_s mmsgs_per_s; do positive $what $key; done
  done
done
[ "$(json many endpoints)" = 200 ] && [ "$(json few endpoints)" = 16 ] || die "the JSON does not say how many"
positive rate_ratio
run 1 datperf many --endpoints 201 --clients 4
(
  ulimit -n 100
  run 1 datperf many --endpoints 200 --wire tcp
)
complains 'needs [0-9]+ descriptors .* may have 100'

for wire in shm tcp; do # what was used, not what was asked for
  run 0 datperf lat --size 8 --iters 20 --wire $wire --json
  [ "$(json wire)" = $wire ] || die "the JSON does not say that $wire was used"
  DAT_WIRE=$wire run 0 datperf lat --size 8 --iters 20 --json
  [ "$(json wire)" = $wire ] || die "DAT_WIRE=$wire did not hold"
done
run 2 datperf lat --cpus 0,9999
complains '9999. is no processor'
if grep -q 'Broken pipe' "$work/err"; then die "the complaint is not the first: $(cat "$work/err")"; fi
run 0 datperf --version
says '^datperf [0-9]+\.[0-9]+'

# One buffer, few in flight, streams both ways, on one connection and several, with and without an SRQ.
for metric in bw rate; do
  for options in '--slots 1' '--window 1 --slots 1' '--window 8 --batch 4' '--slots 2048' '--bidirectional' \
    '--bidirectional --slots 1 --window 4' '--bidirectional --srq --endpoints 3 --batch 1 --slots 8'; do
    for op in send write read; do
      # shellcheck disable=SC2086  # several words
      measure $metric --op $op --size 64 --iters 600 $options
    done
    # shellcheck disable=SC2086  # the same
    measure $metric --size 9000 --iters 200 $options
  done
done
for wire in shm tcp; do
  measure bw --size 64KiB --iters 60 --bidirectional --wire $wire
  measure bw --op read --size 64KiB --iters 60 --bidirectional --slots 1 --wire $wire
  for wait in poll block; do measure lat --op write --poll events --size 8 --iters 300 --wait $wait --wire $wire; done
done
# Whatever may be in flight finds a receive, also where all have the same buffer.
measure bw --size 4KiB --iters 600 --slots 1
[ "$(json receives)" -ge "$(json window)" ] || die "only $(json receives) receives for $(json window) messages in flight"
measure lat --op write --poll events --size 9000 --slots 32 --iters 200 --endpoints 3 --srq
[ "$(json poll)" = events ] && [ "$(json slots)" = 32 ] || die "the JSON does not say how it was measured"
measure lat --size 64 --slots 1 --iters 500
# By calls for many.
for options in '' --srq '--endpoints 3' '--endpoints 3 --srq --window 8 --slots 2'; do
  for wire in shm tcp; do
    # shellcheck disable=SC2086  # several words
    measure rate --size 8 --iters 3001 --at-once 4 --wire $wire $options
  done
done
measure bw --size 1MiB --iters 20 --at-once 64
[ "$(json at_once)" = 64 ] || die "the JSON does not say how it was measured"
measure rate --size 8 --window 16 --slots 4 --batch 2 --iters 2000
[ "$(json window) $(json slots) $(json batch) $(json bidirectional)" = '16 4 2 OFF' ] ||
  die "the JSON does not say how it was measured"
[ "$(json server messages)" = 2000 ] || die "the server does not say what it received"
[ "$(json server carried_by)" = "$(json wire)" ] || die "the server does not say over what"
positive server elapsed_s

# A time in place of a number.
for options in 'lat --op send' 'lat --op write' 'rate --op send' 'bw --op read' 'bw --op send --bidirectional'; do
  # shellcheck disable=SC2086  # several words
  measure $options --size 64 --duration 0.1
  awk -v s="$(json seconds)" 'BEGIN {exit !(s > 0.09)}' || die "a run of 0.1 s took $(json seconds) s"
done

# Latencies in all detail.
measure lat --size 8 --iters 400 --histogram --raw "$work/raw"
[ "$(wc -l <"$work/raw")" = 400 ] || die "there are not 400 figures in the file"
for key in min_ns mean_ns max_ns; do positive $key; done
positive histogram 0 count
positive samples 99
sort -g "$work/raw" | head -n 1 | awk -v m="$(json min_ns)" '{exit !($1 - m < 0.2 && m - $1 < 0.2)}' ||
  die "the least of the figures is not the minimum"
measure bw --size 4096 --iters 6000 --raw "$work/raw"
[ -s "$work/raw" ] || die "there are no figures of a stream"
run 0 datperf lat --size 8 --iters 300 --histogram
says ' up to .* #+$'

# Beside a former run.
run 0 datperf lat --size 64 --iters 500 --json
cp "$work/out" "$work/former.json"
run 0 datperf lat --size 64 --iters 500 --json --compare "$work/former.json"
awk -v r="$(json compared ratio)" -v l="$(json compared low)" -v h="$(json compared high)" \
  'BEGIN {exit !(r > 0 && l > 0 && l <= h)}' || die "the comparison has no interval"
run 0 datperf lat --size 64 --iters 500 --compare "$work/former.json"
says "ratio of .*former.json: [0-9.]+, between [0-9.]+ and [0-9.]+ at 95 %"
run 1 datperf lat --size 64 --iters 50 --srq --compare "$work/former.json"
complains 'another run: srq is false there and true here'
run 1 datperf lat --size 8 --iters 50 --compare "$work/former.json"
complains 'no run of 8 bytes'
echo '{"size_bytes": 64, ' >"$work/torn.json"
run 1 datperf lat --size 64 --compare "$work/torn.json"
complains 'not what --json has printed'
run 1 datperf lat --size 64 --compare "$work/nowhere.json"
run 1 datperf lat --size 64 --iters 50 --raw "$work/no/such/folder"
complains 'cannot be written'

start_server datperf serve --qual 0
measure lat --to "$server_at" --size 8 --iters 100
measure bw --to "$server_at" --size 4096 --iters 100 --srq
stop_server

run 0 datperf rate --iters 20 # all sizes, as a table
says '^ +4 MiB +20 '
run 1 datperf lat --to "$server_at" --size 8 --iters 1
run 2 datperf
run 2 datperf lat --size 0
run 2 datperf many --clients 1
run 2 datperf lat --op swap
run 2 datperf lat --op write --wait block # there is nothing to block in
# What makes no sense is refused with the reason.
refused() { # SENTENCE OPTION...
  run 2 datperf "${@:2}"
  complains "$1"
}
refused 'one message is in flight' lat --window 4
refused 'one message is posted' lat --batch 4
refused 'both directions in it' lat --bidirectional
refused 'only the latency of Writes' bw --op write --poll events
refused 'only the latency of Writes' lat --poll events
refused 'blocks in neither' bw --bidirectional --wait block
refused 'no more than the window' rate --window 4 --batch 8
refused 'no more than half of the window' rate --window 8 --at-once 5
refused 'a stream in one direction' lat --at-once 4
refused 'a stream in one direction' bw --op write --at-once 4
refused 'a stream in one direction' rate --bidirectional --at-once 4
refused 'the batch is what one call posts' rate --at-once 4 --batch 4
refused 'no latencies' bw --histogram
refused 'say which with --size' lat --raw "$work/raw"
refused 'excludes' lat --iters 5 --duration 1
refused 'no power of two' rate --window 3
refused 'no power of two' rate --window 8192
refused 'no power of two' rate --slots 0
run 2 datperf rate --batch 0
run 2 datperf rate --duration 0
say "datperf is in order"
