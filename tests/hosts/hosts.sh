#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Three hosts on one machine, and what can happen between them.
#
#        .----------- the switch: a network namespace with a bridge ----------.
#        |      port_a                port_b                port_c            |
#        '--------|---------------------|---------------------|---------------'
#                 | veth                | veth                | veth
#               eth0                  eth0                  eth0
#              host a                host b                host c        a network namespace each
#             10.77.0.1             10.77.0.2             10.77.0.3
#              fd77::1               fd77::2               fd77::3
#
# Switch and hosts live in a user and a process namespace of this run. That needs no privilege, runs side by side
# do not meet, and when the script ends, however it ends, all of it goes with its last process.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"

all_cases=(traffic ipv6 without_crc qualifiers many_to_one killed_peer link_pause slow_receiver host_vanishes silent_receiver
  capture)
usage() {
  say "Usage: tests/hosts/hosts.sh FOLDER_OF_PROGRAMS [CASE...]    cases: ${all_cases[*]}"
  say "Exit code 77: this machine does not let us."
}
skip() {
  say "skipped: $*"
  exit 77
}

if [ "${1:-}" != --inside ]; then
  [ $# -ge 1 ] || { usage >&2 && exit 2; }
  command -v ip >/dev/null || skip "there is no ip(8) here (package iproute2)"
  reason=$(unshare --user --map-root-user --net --mount --pid --fork --mount-proc \
    ip link add name probe type veth peer name eborp 2>&1) || skip "no network of our own: $reason"
  exec unshare --user --map-root-user --net --mount --pid --fork --mount-proc --kill-child "$0" --inside "$@"
fi
shift
bin=$(realpath "$1")
shift
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=("${all_cases[@]}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- The network ----

declare -A host # name -> a process that lives in it
on() {          # on HOST COMMAND...: runs it there
  nsenter --target "${host[$1]}" --net "${@:2}"
}

ip link set lo up
ip link add name switch type bridge
ip link set switch up

plug_in() { # plug_in NAME NUMBER: makes that host and connects it
  local name=$1 number=$2
  unshare --net sleep infinity &
  host[$name]=$!
  # The process is in its own namespace a moment after it has been started.
  until [ "$(readlink "/proc/${host[$name]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  ip link add name "port_$name" type veth peer name eth0 netns "${host[$name]}"
  ip link set "port_$name" master switch up
  on "$name" ip link set lo up
  on "$name" ip address add "10.77.0.$number/24" dev eth0
  # Without nodad the address could not be used at once.
  on "$name" ip -6 address add "fd77::$number/64" dev eth0 nodad 2>/dev/null || true
  on "$name" ip link set eth0 up
}
unplug() { # unplug NAME: the host is gone, and tells no peer
  ip link delete "port_$1"
  kill "${host[$1]}"
  unset "host[$1]"
}

# ---- Programs ----

# start NAME HOST COMMAND...: in the background; its output goes to $work/NAME, its process is ${started[NAME]}.
declare -A started
start() {
  local name=$1
  rm -f "$work/$name" # of an earlier case
  nsenter --target "${host[$2]}" --net "${@:3}" >"$work/$name" 2>&1 &
  started[$name]=$!
}
# await NAME PATTERN: until that program has printed such a line.
await() {
  local tries
  for ((tries = 0; tries < 1800; ++tries)); do
    grep -qsE -- "$2" "$work/$1" && return 0
    kill -0 "${started[$1]}" 2>/dev/null || break
    sleep 0.05
  done
  grep -qE -- "$2" "$work/$1" || die "$1 does not say '$2': $(cat "$work/$1")"
}
# ended NAME [PATTERN]: it ends, with exit code 0, and has printed such a line.
ended() {
  wait "${started[$1]}" || die "$1 ended with exit code $?: $(cat "$work/$1")"
  [ $# -eq 1 ] || grep -qE -- "$2" "$work/$1" || die "$1 does not say '$2': $(cat "$work/$1")"
}
qualifier_of() { # of the server that has printed one
  await "$1" '(serving on|qualifier) [0-9]+'
  sed -nE 's/.*(serving on|qualifier) ([0-9]+).*/\2/p' "$work/$1"
}
run_on() { # run_on HOST COMMAND...: it must succeed
  on "$1" "${@:2}" >"$work/out" 2>&1 || die "on host $1, '${*:2}' failed: $(tail -n 5 "$work/out")"
}
receive_on() { start receiver "$1" "$bin/tests/member" receive --ia soft-eth0 "${@:2}"; }
send_from() { # send_from HOST NAME TO ARGUMENT...
  start "$2" "$1" "$bin/tests/member" send --ia soft-eth0 --to "$3" --qual "$(qualifier_of receiver)" "${@:4}"
}

# ---- The cases ----

exchange_with() { # exchange_with ADDRESS_OF_A: every operation, small and large, between a and b
  local to=$1 op size
  start server a "$bin/datperf" serve --ia soft-eth0 --qual 21122
  await server 'serving'
  for op in send write read; do
    for size in 1 4096 1MiB; do
      run_on b "$bin/datperf" bw --ia soft-eth0 --op $op --size $size --iters 100 --to "$to:21122" --json
      [ $op = write ] || run_on b "$bin/datperf" lat --ia soft-eth0 --op $op --size $size --iters 50 --srq --wait block \
        --to "$to:21122" --json
    done
  done
  run_on b "$bin/datperf" rate --ia soft-eth0 --size 8 --iters 20000 --srq --endpoints 5 --to "$to:21122" --json
  kill -INT "${started[server]}"
  ended server
}
traffic() { exchange_with 10.77.0.1; }
ipv6() { exchange_with '[fd77::1]'; }
without_crc() { DAT_CRC=off exchange_with 10.77.0.1; }

ports_of_connections() { # HOST FIRST LAST
  on "$1" sh -c "echo $2 $3 > /proc/sys/net/ipv4/ip_local_port_range"
}
qualifiers() { # that are no ports, of which two have the same first port, between hosts that disagree on who may have it
  local qual to
  ports_of_connections a 16384 32767
  ports_of_connections b 1024 16383
  for qual in 65536 75076; do
    start "server_$qual" a "$bin/datping" --serve --ia soft-eth0 --qual $qual
    await "server_$qual" 'serving'
  done
  for qual in 65536 75076; do
    for to in 10.77.0.1 '[fd77::1]'; do run_on b "$bin/datping" --ia soft-eth0 --to "$to:$qual" --count 50; done
  done
  for to in 10.77.0.1:65537 10.77.0.1:20212; do
    ! on b "$bin/datping" --ia soft-eth0 --to $to --count 1 >"$work/out" 2>&1 || die "somebody answers at $to"
    grep -q 'nobody serves there' "$work/out" || die "at $to there is not nobody: $(cat "$work/out")"
  done
  # A filter of host b, at the port that one of them has and the other would have liked to have.
  on b ip rule add ipproto tcp dport 20212 prohibit
  run_on b "$bin/datping" --ia soft-eth0 --to 10.77.0.1:75076 --count 50
  ! on b "$bin/datping" --ia soft-eth0 --to 10.77.0.1:65536 --count 1 >"$work/out" 2>&1 || die "the filter lets all through"
  grep -q 'nobody serves there' "$work/out" || die "behind a filter there is not nobody: $(cat "$work/out")"
  on b ip rule delete ipproto tcp dport 20212 prohibit
  for qual in 65536 75076; do
    kill -INT "${started[server_$qual]}"
    ended "server_$qual"
  done
  ports_of_connections a 32768 60999
  ports_of_connections b 32768 60999
}

many_to_one() { # four clients on two hosts, one server with one small SRQ
  local i files=("$here/hosts.sh" "$bin/tests/member")
  start server a "$bin/examples/srq-server" --serve --ia soft-eth0 --clients 4 --buffers 16 --low 4 -- "${files[@]}"
  await server 'on qualifier'
  for i in 0 1 2 3; do
    start "client$i" "$([ $((i % 2)) -eq 0 ] && echo b || echo c)" "$bin/examples/srq-server" --ia soft-eth0 \
      --client $i --clients 4 --to 10.77.0.1 --qual "$(qualifier_of server)" -- "${files[@]}"
  done
  for i in 0 1 2 3; do ended "client$i"; done
  ended server 'Every byte of every file arrived'
}

killed_peer() { # a process dies: the kernel of its host tells the other side, whose other connection goes on
  receive_on a --connections 2
  send_from b victim 10.77.0.1 --count 1000000 --pause 5
  send_from c other 10.77.0.1 --count 200 --pause 10
  await victim connected
  await other connected
  kill -KILL "${started[victim]}"
  await receiver 'connection over: .*BROKEN; [0-9]+ messages'
  ended other 'DISCONNECTED; 200 messages'
  ended receiver 'DISCONNECTED; 200 messages'
}

frames_from() { ip -s link show "$1" | awk '/RX:/ { getline; print $2 }'; } # PORT

link_pause() { # the cable is out for a while: no program learns of it
  receive_on a
  local enough=$(($(frames_from port_b) + 70)) # of the 200, which are a frame each, behind those that connect them
  send_from b sender 10.77.0.1 --count 200 --pause 10
  await sender connected
  until [ "$(frames_from port_b)" -ge $enough ]; do
    kill -0 "${started[sender]}" 2>/dev/null || die "the sender has ended"
    sleep 0.05
  done
  ip link set port_b down
  sleep 1.5 # that is how long it is out
  ip link set port_b up
  ended sender 'DISCONNECTED; 200 messages'
  ended receiver 'DISCONNECTED; 200 messages'
}

slow_receiver() { # it holds its sender back, and neither hoards what it cannot pass on
  # What has been freed is not hoarded, though the address sanitizer would keep it.
  local -x ASAN_OPTIONS=quarantine_size_mb=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
  receive_on a --buffers 4 --bytes 65536 --pause 1
  send_from b sender 10.77.0.1 --bytes 65536 --count 2000
  ended sender 'DISCONNECTED; 2000 messages'
  ended receiver 'DISCONNECTED; 2000 messages'
  local name kib
  for name in sender receiver; do
    kib=$(sed -n 's/memory grew by \([0-9]*\) KiB.*/\1/p' "$work/$name")
    [ "$kib" -lt 16384 ] || die "the $name grew by $kib KiB for 128 MB of messages"
  done
}

host_vanishes() { # a sender's host is gone without a word: the server finds out, and serves on
  DAT_TCP_TIMEOUT_MS=5000 receive_on a --connections 2
  send_from b victim 10.77.0.1 --count 1000000 --pause 5
  await victim connected
  unplug b
  kill -KILL "${started[victim]}"
  await receiver 'connection over: .*BROKEN; [0-9]+ messages'
  send_from c other 10.77.0.1 --count 50
  ended other 'DISCONNECTED; 50 messages'
  ended receiver 'DISCONNECTED; 50 messages'
  plug_in b 2
}

silent_receiver() { # the other way round: who sends to a host that is gone learns of it, and gets back what it posted
  receive_on a
  DAT_TCP_TIMEOUT_MS=5000 send_from b sender 10.77.0.1 --count 1000000 --pause 5
  await sender connected
  ip link set port_a down
  kill -KILL "${started[receiver]}"
  ended sender 'BROKEN'
  ip link set port_a up
}

# decode ARGUMENT...: tshark on the capture. Without the protocols above RDMA, which it would guess in any payload; in two
# passes, so that it knows of each piece of a frame to which it belongs.
decode() {
  tshark -2 --disable-protocol rpcordma --disable-protocol smb_direct -r "$work/capture" "$@" 2>/dev/null
}
take_capture() { # of every operation, and of an end with a Terminate
  local size op tries
  rm -f "$work/capture" # of an earlier try
  start capturer b dumpcap -q -i eth0 -f tcp -B 64 -w "$work/capture"
  for ((tries = 0; tries < 200; ++tries)); do
    [ -s "$work/capture" ] && break
    kill -0 "${started[capturer]}" 2>/dev/null || skip "nothing can be captured: $(tail -n 1 "$work/capturer")"
    sleep 0.05
  done
  start server a "$bin/datperf" serve --ia soft-eth0 --qual 21122
  await server 'serving'
  for op in send write read; do
    for size in 1 100 4096 70000; do
      run_on b env DAT_CRC=on "$bin/datperf" bw --ia soft-eth0 --op $op --size $size --iters 20 --to 10.77.0.1:21122 --json
    done
  done
  kill -INT "${started[server]}"
  ended server
  receive_on a
  DAT_CRC=on send_from b sender 10.77.0.1 --count 10 --trespass
  ended sender BROKEN
  ended receiver BROKEN
  # What it has not written when it is stopped is lost.
  for ((tries = 0; tries < 100; ++tries)); do
    decode -Y 'iwarp_rdma.opcode == 7' | grep -q . && break
    sleep 0.1
  done
  kill -INT "${started[capturer]}"
  ended capturer
}
sent_anew='tcp.analysis.retransmission || tcp.analysis.out_of_order' # what has been judged when it was sent first
judge_capture() { # says what is wrong with it, and nothing if that is nothing
  local found filter opcode
  for filter in '_ws.malformed' 'tcp.len > 0 && !iwarp_mpa && !tcp.reassembled_in' 'iwarp_mpa.bad_length'; do
    found=$(decode -Y "$filter && !($sent_anew)" | head -n 3)
    [ -z "$found" ] || echo "$filter: $found"
  done
  found=$(decode -V -Y iwarp_mpa.crc_check | sed -n 's/.*CRC check: .*(\(Good\|Bad\) CRC32.*/\1/p' | sort | uniq -c)
  [ "$(awk '{print $2}' <<<"$found")" = Good ] || echo "the CRCs are: $found"
  found=$(decode -Y iwarp_rdma -T fields -e iwarp_rdma.opcode | tr ',' '\n' | sort | uniq -c)
  for opcode in 0x00 0x01 0x02 0x03 0x07; do # Write, Read Request, Read Response, Send, Terminate
    grep -q "$opcode" <<<"$found" || echo "no message of kind $opcode among $found"
  done
}
capture() { # what a packet analyser makes of it: MPA, DDP and RDMAP, every frame whole, every CRC good
  local wrong disturbed
  if ! command -v tshark >/dev/null || ! command -v dumpcap >/dev/null; then
    skip "there is no tshark here"
  fi
  for _ in 1 2 3 4 5; do
    take_capture
    wrong=$(judge_capture)
    [ -n "$wrong" ] || return 0
    # An analyser understands a stream that it has seen whole and in order. On a busy host frames are missing in the capture, and
    # TCP sends anew what was not acknowledged in time. Only what is wrong without that is a fault.
    disturbed=$(grep 'received/dropped' "$work/capturer" | grep -v ': [0-9]*/0 ' || true)
    disturbed+=$(decode -Y "$sent_anew || tcp.analysis.lost_segment" | sed -n 1p)
    [ -n "$disturbed" ] || die "$wrong"
  done
  skip "this machine is too slow ($disturbed): $wrong"
}

plug_in a 1
plug_in b 2
plug_in c 3
for case in "${cases[@]}"; do
  start_s=$SECONDS
  $case
  say "$case: in order ($((SECONDS - start_s)) s)"
done
