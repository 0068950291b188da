# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# dapltest, for field.sh: one server serves all clients of a case, until one of them tells it to quit.

dapltest=("$programs/dapltest")

serve() {
  start_server 'Service Point Ready' "${dapltest[@]}" -T S -D "$adapter"
  : >"$work/expected"
  again=0
}
# kinds NUMBER OF: so many kinds of dapltest's tests have passed, of so many. In all it is 102: 35 of transactions, three of
# which are those over several endpoints, 10 of performance, 35 functions, 20 limits, and the server with the client that
# tells it to quit.
kinds() {
  [ "$1" -eq "$2" ] || die "$1 kinds of tests have passed instead of $2"
  say "note: $1 kinds"
}
tell_to_quit() {
  run_client "${dapltest[@]}" -T Q -s "$server_at" -D "$adapter"
  says client 'Client Exiting'
  await_server
  says server 'DT_cs_Server.*Exiting'
  no_complaints server
}

# finished PATTERN: the server says so of as many clients as there were, and then makes a new service point for the next one.
finished() {
  echo >>"$work/expected"
  local clients
  clients=$(wc -l <"$work/expected")
  until [ "$(grep -c 'Service Point Ready' "$work/server")" -gt "$clients" ] &&
    [ "$(grep -cE -- "$1" "$work/server")" -ge "$clients" ]; do
    kill -0 "$server" 2>/dev/null || die "the server has ended: $(tail -n 3 "$work/server")"
    sleep 0.02
  done
  says server "$1" "$clients"
}

# bytes_of KIND... -- OPERATION...: how many bytes the operations of these kinds ("client SR") move, once each.
bytes_of() {
  local kinds=()
  while [ "$1" != -- ]; do
    kinds+=("$1")
    shift
  done
  shift
  printf '%s\n' "$@" | awk -v kinds="$(IFS=,; echo "${kinds[*]}")" '
    index("," kinds ",", "," $1 " " $2 ",") { sum += ($3 ? $3 : 4096) * ($4 ? $4 : 1) }
    END { print sum + 0 }'
}

# counted WHAT BYTES: the client's statistics, which are in units of 10 KB, cut off.
counted() {
  local got
  got=$(sed -nE "s/^Total $1 *: *([0-9]+\.[0-9]+) MB.*/\1/p" "$work/client")
  awk -v got="$got" -v bytes="$2" 'BEGIN { d = got - bytes / 1e6; exit !(got != "" && d < 0.001 && d > -0.011) }' ||
    die "the client has counted '$got' MB as $1 instead of $2 bytes"
}

# transaction THREADS ENDPOINTS ITERATIONS [OPTION...] -- OPERATION...
transaction() {
  local threads=$1 endpoints=$2 iterations=$3 options=() operations=() operation rounds
  shift 3
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  for operation in "$@"; do read -ra words <<<"$operation" && operations+=("${words[@]}"); done
  run_client "${dapltest[@]}" -T T -s "$server_at" -D "$adapter" -t "$threads" -w "$endpoints" -i "$iterations" \
    "${options[@]}" "${operations[@]}"
  no_complaints client
  says client 'End of Work -- Client Exiting'
  # Of what takes less than a millisecond it counts nothing, and says to let it do more.
  if grep -q 'enough time has lapsed' "$work/client" && [ "$iterations" -lt 1000000 ]; then
    says client 'Test completed successfully'
    finished 'Transaction Test Finished for this client'
    again=$((again + 1))
    transaction "$threads" "$endpoints" $((10 * iterations)) "${options[@]}" -- "$@"
    return
  fi
  says client "Stats ---- : $threads threads, $endpoints EPs"
  # What it adds to an iteration whose data is to be compared.
  [[ " ${options[*]} " != *" -V "* ]] || set -- "$@" 'server SR' 'client SR' 'server SR'
  rounds=$((threads * endpoints * iterations))
  counted Send $((rounds * $(bytes_of 'client SR' -- "$@")))
  counted Recv $((rounds * $(bytes_of 'server SR' -- "$@")))
  counted 'RDMA Read' $((rounds * $(bytes_of 'client RR' 'server RR' -- "$@")))
  counted 'RDMA Write' $((rounds * $(bytes_of 'client RW' 'server RW' -- "$@")))
  finished 'Transaction Test Finished for this client'
}

case_transactions() {
  local size threads
  serve
  for size in 64 256 4096 16384 65536; do
    transaction 1 1 5000 -- "client SR $size" "server SR $size"
    transaction 1 1 200 -V -- "client SR $size 3" "server SR $size 2"
    transaction 1 1 200 -V -- "client RW $size" "server RW $size" "client RR $size"
    transaction 1 1 500 -V -P -- "client SR $size" "server SR $size"
  done
  # It spaces segments by 256 bytes, and looks for what came by RDMA in that distance.
  transaction 1 1 200 -V -- 'client RW 256 4' 'server RW 512 3' 'server RR 768 2'
  transaction 1 1 10000 -P -- 'client SR 256' 'server SR 256'
  transaction 1 1 200 -r -- 'client SR 1024' 'server SR 1024'
  transaction 1 1 200 -r -V -- 'client RW 4096' 'server RR 4096'
  for threads in 2 4 8 16; do transaction $threads 1 200 -V -- 'client SR 1024' 'server SR 1024'; done
  transaction 4 1 200 -V -P -- 'client RW 4096' 'server RR 4096'
  transaction 1 1 500 -V -- 'client SR 1024 3 -f' 'server SR 2048 1 -f'
  transaction 1 1 200 -V -- 'client RR 4096' 'server RR 8192'
  transaction 1 1 200 -V -- 'client RW 1024' 'client RW 2048' 'server RW 4096'
  tell_to_quit
  kinds $(($(wc -l <"$work/expected") - again)) 32
}

# Of several endpoints of a thread it counts on it that their messages arrive in the order in which they were sent, which
# nothing says of connections.
case_endpoints() {
  serve
  transaction 1 8 200 -- 'client SR 1024 3' 'server SR 1536 2'
  transaction 2 8 100 -V -- 'client SR 1024 3' 'server SR 1536 2' 'client RW 4096' 'server RR 4096'
  transaction 8 4 100 -V -P -- 'client RW 4096 2' 'server RW 2048 4' 'client SR 256' 'server SR 256'
  tell_to_quit
  kinds $(($(wc -l <"$work/expected") - again)) 3
}

performance() { # OPERATION SIZE SEGMENTS OPTION...
  run_client "${dapltest[@]}" -T P -s "$server_at" -D "$adapter" -i 2000 "${@:4}" "$1" "$2" "$3"
  no_complaints client
  says client "Operation Type *: $1\$"
  says client 'Number of Operations *: 2000$'
  says client 'End of Work -- Client Exiting'
  local megabytes
  megabytes=$(sed -nE 's/.*Total Data Exchanged *: *([0-9.]+) MB.*/\1/p' "$work/client")
  awk -v got="$megabytes" -v bytes=$((2000 * $2 * $3)) 'BEGIN { d = got - bytes / 1048576; exit !(got != "" && d < 0.02 && d > -0.02) }' ||
    die "the client has exchanged '$megabytes' MB instead of $((2000 * $2 * $3)) bytes"
  finished 'Finished performance test\.  Exiting'
}

case_performance() {
  local operation mode
  serve
  for operation in RW RR; do
    for mode in b p; do
      performance $operation 4096 2 -m $mode -p 16
      performance $operation 65536 1 -m $mode -p 4
    done
    performance $operation 256 1 -m b -p 1
  done
  tell_to_quit
  kinds "$(wc -l <"$work/expected")" 10
}

# Each functional test says PASS, FAIL or UNSUPP, and how many there are is counted as well. UNSUPP is dapltest's own word for
# what it leaves out: the query of a connection request (queryinfo 5).
case_functions() {
  local group least passed unsupported all=0
  for group in hwconn:4 endpoint:3 pz:3 mem:5 connmgt:2 queryinfo:16; do
    least=${group#*:} group=${group%:*}
    run_client "${dapltest[@]}" -T F -D "$adapter" -f "$group" -s "$server_at"
    passed=$(grep -c 'Result: PASS' "$work/client" || true)
    unsupported=$(grep -c 'Result: UNSUPP' "$work/client" || true)
    says client 'Function feature: ' $((passed + unsupported))
    [ "$unsupported" -eq 0 ] || { [ "$group" = queryinfo ] && [ "$unsupported" -eq 1 ]; } || die "$unsupported of $group are not supported"
    [ "$passed" -ge "$least" ] || die "of $least functional tests of $group these passed: $passed"
    all=$((all + passed + unsupported))
  done
  kinds $all 35
}

# As many objects as are asked for, made through one instance, and through four of which one has the EVDs of all.
case_limits() {
  local limit workers
  for workers in 1 4; do
    for limit in ia:IAs pz:PZs cno:CNOs evd:EVDs ep:EPs rsp:RSPs psp:PSPs lmr:LMRs; do
      run_client "${dapltest[@]}" -T L -D "$adapter" -w $workers -m 100 "limit_${limit%:*}"
      no_complaints client
      says client "${limit#*:} (created|opened): 100\$"
    done
    run_client "${dapltest[@]}" -T L -D "$adapter" -w $workers -m 100 limit_size_lmr
    says client 'LMR of 0x[0-9a-f]+ bytes OK'
    no_complaints client
    # It posts until it is refused, and then says how many went.
    run_client "${dapltest[@]}" -T L -D "$adapter" -w $workers -m 100 limit_rpost
    says client 'dat_ep_post_recv fails: DAT_INSUFFICIENT_RESOURCES'
    says client "total posted: $((16 * workers))\)"
  done
  kinds 20 20
}
