# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# How field.sh runs a server and a client, and what holds of the output of every program.

# use_wire WIRE: where the two ends are, and how they reach each other.
use_wire() {
  export DAT_WIRE=$1
  if [ "$1" = shm ]; then
    adapter=soft-lo server_at=127.0.0.1 client_host=()
  else
    adapter=soft-eth0 server_at=10.79.0.1 client_host=(nsenter --target "$other_host" --net)
  fi
}

# start_server READY COMMAND...: in the background, until it has printed a line that matches READY. Its output is in
# $work/server.
start_server() {
  local ready=$1
  shift
  # The shell in the background empties the file at some time later: until then the server before would be ready.
  : >"$work/server"
  # It serves all clients of a case, each of which has the patience for itself.
  timeout $((10 * patience)) stdbuf -oL -eL "$@" >"$work/server" 2>&1 &
  echo $! >"$work/server.pid"
  server=$!
  until grep -qE -- "$ready" "$work/server"; do
    kill -0 "$server" 2>/dev/null || die "the server does not come up: $(tail -n 3 "$work/server")"
    sleep 0.02
  done
}

# run_client COMMAND...: its output is in $work/client.
run_client() {
  local code=0
  timeout "$patience" stdbuf -oL -eL "${client_host[@]}" "$@" >"$work/client" 2>&1 || code=$?
  [ $code -ne 124 ] || die "the client has not ended: $(tail -n 3 "$work/client"); the server: $(tail -n 3 "$work/server")"
  [ $code -lt 128 ] || die "the client was killed by signal $((code - 128))"
}

await_server() {
  local code=0
  wait "$server" || code=$?
  [ $code -ne 124 ] || die "the server has not ended: $(tail -n 3 "$work/server"); the client: $(tail -n 3 "$work/client")"
  [ $code -lt 128 ] || die "the server was killed by signal $((code - 128))"
}

# stop_all: what a case that failed has left.
stop_all() {
  if [ -e "$work/server.pid" ]; then
    pkill -KILL -P "$(cat "$work/server.pid")" 2>/dev/null || true
    rm -f "$work/server.pid"
  fi
}

# says END PATTERN [TIMES]: some line of that end's output matches, or so many do.
says() {
  local found
  found=$(grep -cE -- "$2" "$work/$1" || true)
  if [ $# -eq 2 ]; then
    [ "$found" -gt 0 ] || die "the $1 does not say '$2': $(tail -n 4 "$work/$1")"
  else
    [ "$found" -eq "$3" ] || die "the $1 says '$2' $found times instead of $3"
  fi
}

# no_complaints END...: nothing that any of these programs prints when something is wrong.
no_complaints() {
  local end complaint
  for end in "$@"; do
    # What dtest of DAT 2.0 says when triggers of its CNO have merged, before it looks again, is none. It also
    # lists the Provider's attributes, among which ANYDAT_REMOTE_ERRORS is; dtestx prints counters of errors, by name.
    complaint=$(grep -vE 'CNO notification|^  DCNT_|[Pp]rovider.[Ss]pecific.[Aa]ttr' "$work/$end" |
      grep -iE -m 1 -- 'error|(^|[^a-z])err([^a-z]|$)|fail|unexpected|warning|mismatch|bogus|not supported' || true)
    [ -z "$complaint" ] || die "the $end complains: $complaint"
  done
}
