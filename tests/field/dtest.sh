# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# dtest, dtestcm, dtestsrq and dtestx, for field.sh.

# pair PROGRAM READY ARGUMENT...: a server and a client with the same arguments.
pair() {
  start_server "$2" "$programs/$1" -P "$adapter" "${@:3}"
  # That of DAT 2.0 tells its client by a socket of its own, of port 15828, what to connect to, and so does dtestx.
  if [ "$1" = dtestx ] || { [ "$1" = dtest ] && [ "$dat" = 2.0 ]; }; then
    until grep -qE ':3DD4 [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6; do
      kill -0 "$server" 2>/dev/null || die "the server has ended: $(tail -n 3 "$work/server")"
      sleep 0.02
    done
  fi
  run_client "$programs/$1" -P "$adapter" "${@:3}" -h "$server_at"
  await_server
}

# dtest moves data by RDMA Write, then by RDMA Read, then sends as many messages as the burst there and back. It shows
# what is in its buffers, and compares nothing.
#
# It has three races of its own. It reads the peer's buffer before the peer has surely put there what is to be read, and
# then finds what it has written there itself. That of 1.2 takes whatever its CNO tells for the event that it waits for,
# although a message of the peer may come before the end of its own RDMA Read. And it fills the source of its RDMA Writes
# anew before they have completed; over TCP the lengths are therefore such that a socket takes all of them at once.
judge_dtest() { # LENGTH BURST
  local end name other
  no_complaints server client
  for end in server client; do
    name=${end^^}
    [ $end = server ] && other=client || other=server
    if [ "$dat" = 2.0 ]; then says $end 'DAPL Test Complete\. PASSED'; else says $end 'DAPL Test Complete\.'; fi
    says $end "$name: RDMA write buffer contains: $other RDMA write data\.\.\."
    if grep -q "$name: RCV RDMA read buffer contains: $end RDMA write data\.\.\." "$work/$end"; then
      say "note: RDMA Read before the peer's buffer was filled"
    else
      says $end "$name: RCV RDMA read buffer contains: $other RDMA read data\.\.\."
    fi
  done
  # That of 2.0 exchanges 100, whatever the burst.
  local messages=$2
  [ "$dat" = 1.2 ] || messages=100
  says server "SERVER: RCV buffer.* contains: 0x55 len=$1\$" "$messages"
  says client "CLIENT: RCV buffer.* contains: 0xf*aa len=$1\$" "$messages"
}

case_dtest() {
  local mode length burst lengths='64 16384'
  [ "$DAT_WIRE" = shm ] || lengths='64 128'
  for mode in '' -p; do
    for length in $lengths; do
      for burst in 10 100; do
        # shellcheck disable=SC2086  # no mode is no argument
        pair dtest 'aiting for (client )?connect' $mode -v -b $length -B $burst
        judge_dtest $length $burst
      done
    done
  done
}

# The modes that dtest of DAT 2.0 alone has: RDMA Writes alone, from both ends at once or there and back; with completions of
# every 50th alone; with a delay before each; of every length; and timed.
modes() { # LINE OPTION...
  pair dtest 'aiting for (client )?connect' "${@:2}"
  no_complaints server client
  local end
  for end in server client; do
    says $end 'DAPL Test Complete\. PASSED'
    says $end "$1"
  done
}
case_modes() {
  modes 'RDMA write \(bi-direction\).* 40 x 4096' -v -w -b 4096 -B 20
  modes 'RDMA write \(bi-direction\).* 40 x 4096' -v -w -S 50 -b 4096 -B 20
  modes 'RDMA write PingPong: \(20 x 4096\)' -v -W -b 4096 -B 20
  modes 'RDMA write PingPong: \(20 x 4096\)' -v -W -D -b 4096 -B 20
  modes 'RDMA write PingPong: \(20 x 63\)' -v -W -a -i 3 -b 64 -B 20
  modes 'RDMA read:.* 4 bursts' -v -t -b 64 -B 20
}

case_cno() {
  local try burst complaint
  for burst in 10 50; do
    for ((try = 1; ; ++try)); do
      pair dtest 'aiting for (client )?connect' -c -v -b 64 -B $burst
      complaint=$(grep -hE 'Error waiting on h_dto_cno: evd != h_dto_req_evd' "$work/server" "$work/client" || true)
      { [ "$dat" = 1.2 ] && [ -n "$complaint" ] && [ $try -lt 10 ]; } || break
      say "note: a message came before the end of an RDMA Read"
    done
    judge_dtest 64 $burst
  done
}

case_dtestcm() {
  local mode
  for mode in '' -w; do
    # shellcheck disable=SC2086
    pair dtestcm 'ready on port|aiting' $mode -c 100
    no_complaints server client
    says server 'ALL 100 CONNECTED on Server'
    says client 'ALL 100 CONNECTED on Client'
    says server 'Test Complete'
    says client 'Test Complete'
  done
}

# It compares what it receives with what it expects of each endpoint, in order, and prints what is wrong.
case_dtestsrq() {
  local endpoints
  for endpoints in 1 8 20 100; do
    pair dtestsrq 'ready on port' -c $endpoints -B 10 -b 256
    no_complaints server client
    says server "ALL $endpoints CONNECTED on"
    says client "ALL $endpoints CONNECTED on"
    says server 'Test Complete'
    says client 'Test Complete'
  done
}

case_dtestx() {
  pair dtestx 'aiting to snd addr' -v -p
  no_complaints server client
  local end test
  for end in server client; do
    for test in RDMA_WRITE_WITH_IMMEDIATE_DATA CMP_SWAP FETCH_ADD; do says $end "$test test - PASSED"; done
    says $end 'IB extension test - .* test PASSED'
    says $end 'DCNT_EP_POST_CMP_SWAP 1$'  # with -p
  done
}
