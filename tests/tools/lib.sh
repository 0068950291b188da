# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the tests of the tools share: running a program, and saying what was wrong with its exit code or output.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$here/../../scripts/lib.sh"
[ $# -eq 1 ] || die "usage: ${0##*/} FOLDER_OF_PROGRAMS"
bin=$(realpath "$1")
work=$(mktemp -d)
servers=()
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

# run CODE PROGRAM ARGUMENT...: the program must exit with CODE. Its output is in $work/out and $work/err.
run() {
  local wanted=$1 code=0
  shift
  "$bin/$1" "${@:2}" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq "$wanted" ] || die "'$*' exited with $code, not $wanted: $(tail -n 3 "$work/out" "$work/err")"
}

# says PATTERN, complains PATTERN: some line of the last output, or of its errors, matches.
says() { grep -qE -- "$1" "$work/out" || die "nothing in this output matches $1: $(cat "$work/out")"; }
complains() { grep -qE -- "$1" "$work/err" || die "nothing in these errors matches $1: $(cat "$work/err")"; }

# json KEY...: the value there in the last output, which must be JSON. Numbers select elements of lists.
json() {
  local path
  path=$(IFS=';' && echo "$*")
  cmake -D "file=$work/out" -D "path=$path" -P "$here/json.cmake" 2>&1 || die "no $* in this output: $(cat "$work/out")"
}

# start_server PROGRAM ARGUMENT...: starts a server that prints where it serves, as ADDRESS:QUALIFIER, which is then in
# $server_at. Its process is in $server_pid.
start_server() {
  # The shell in the background empties it at some time later: until then the server before would be found.
  : >"$work/server"
  "$bin/$1" "${@:2}" >"$work/server" 2>&1 &
  server_pid=$!
  servers+=("$server_pid")
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    server_at=$(grep -oE '(\[[0-9a-f:]+\]|[0-9.]+):[0-9]+' "$work/server" | head -n 1 || true)
    [ -n "$server_at" ] && return 0
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.05
  done
  die "'$*' does not serve: $(cat "$work/server")"
}
# stop_server: it must take an interrupt for a wish to end well.
stop_server() {
  kill -INT "$server_pid"
  wait "$server_pid" || die "a server that was interrupted exited with $?: $(cat "$work/server")"
}
