# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Functions for scripts run in the guest.
passed=0 failed=0

# check NAME [!] CMD...: run, time, count; '!' where failure is expected. $brief: says nothing of what passes.
# Its output is left in /tmp/out.
check() {
  local name=$1 t0=$EPOCHREALTIME rc=0 want=0; shift
  [ "$1" != ! ] || { want=1; shift; }
  "$@" > /tmp/out 2>&1 || rc=$?
  local s; s=$(awk "BEGIN{printf \"%.2f\", $EPOCHREALTIME-$t0}")
  if { [ $want = 0 ] && [ $rc = 0 ]; } || { [ $want = 1 ] && [ $rc != 0 ]; }; then
    passed=$((passed + 1)); [ -n "${brief-}" ] || echo "ok   $name (${s} s)"
  else
    failed=$((failed + 1)); echo "FAIL $name: status $rc (${s} s)"
    tail -n 20 /tmp/out | sed 's/^/     | /'
  fi
}

# both SERVER... -- CLIENT...: start the one, run the other; both must succeed.
# $wait_port: wait until this TCP port is listened on; else $settle seconds.
both() {
  local s=() rc=0 src=0 pid n=0
  while [ "$1" != -- ]; do s+=("$1"); shift; done; shift
  timeout "${limit:-60}" "${s[@]}" > /tmp/server 2>&1 & pid=$!
  if [ -n "${wait_port-}" ]; then
    until netstat -ltn | grep -q ":$wait_port " || [ $n -ge 100 ]; do
      sleep 0.1; n=$((n + 1))
    done
  fi
  sleep "${settle:-0.5}"
  timeout "${limit:-60}" "$@" || rc=$?
  wait $pid || src=$?
  [ $rc = 0 ] && [ $src = 0 ] && return
  echo "server's status $src:"; tail -n 10 /tmp/server
  return 1
}

# until_serving PID SAID: waits until the server that is the process PID has said in the file SAID that it may be connected to. The
# file of an earlier server is removed before this one is started, or what that one has said may be read.
until_serving() {
  local n=0
  until grep -qs 'serving on' "$2"; do
    if [ $n -ge 300 ] || ! kill -0 "$1" 2>/dev/null; then
      echo "no server:"
      cat "$2"
      return 1
    fi
    sleep 0.1
    n=$((n + 1))
  done
}

summary() { echo "$passed passed, $failed failed"; [ $failed = 0 ]; }
