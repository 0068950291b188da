# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side, after guest-lib.sh: the tools over adapters for RDMA devices, and what is said where there are none.
module=/extra/lib/anydat/libanydat-verbs.so

lists() { # ADAPTER ADDRESS
  datinfo | grep -qE "^$1 +1\.2 +$2 +yes +anydat$"
}
# says PATTERN COMMAND...: the adapter rxe0 does not open, for one reason in words, and soft works all the same.
says() {
  local pattern=$1
  shift
  "$@" env DAT_LOG=warn datinfo > /tmp/said 2>&1 || { cat /tmp/said; return 1; }
  cat /tmp/said
  [ "$(grep -cE "^dat\[.*warn: dat_ia_open: verbs-rxe0: .*$pattern" /tmp/said)" = 1 ] && grep -qE '^verbs-rxe0 .*does not open' /tmp/said &&
    grep -qE '^soft .*anydat$' /tmp/said && "$@" datping --count 10
}
as_nobody() { su -s /bin/bash nobody -c "export PATH=$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH; $(printf '%q ' "$@")"; }
without_module() {
  mv $module /tmp/module
  "$@"
  local rc=$?
  mv /tmp/module $module
  return $rc
}
with_bad_module() {
  cp $module /tmp/module
  echo 'no library' > $module
  "$@"
  local rc=$?
  cp /tmp/module $module
  return $rc
}
# From one device to the other, which is what crosses a network.
across() { # SERVER CLIENT ADDRESS OPTION...
  local server=$1 client=$2 address=$3
  shift 3
  rm -f /tmp/server
  datping --serve --ia "$server" --qual 17179 "$@" > /tmp/server 2>&1 &
  local pid=$! rc=0
  { until_serving $pid /tmp/server && timeout 20 datping --ia "$client" --to "$address:17179" --count 50 "$@"; } || rc=$?
  kill $pid 2>/dev/null
  wait $pid 2>/dev/null
  return $rc
}

# Two servers whose qualifiers are no ports and have the same first one of theirs (docs/wire-iwarp.md): each is found.
qualifiers() { # SERVER CLIENT ADDRESS
  local servers=() rc=0 qual
  for qual in 65536 75076; do
    rm -f /tmp/server.$qual
    datping --serve --ia "$1" --qual $qual > /tmp/server.$qual 2>&1 &
    servers+=($!)
    until_serving $! /tmp/server.$qual || rc=1
  done
  for qual in 65536 75076; do
    timeout 20 datping --ia "$2" --to "$3:$qual" --count 20 || rc=1
  done
  kill "${servers[@]}" 2>/dev/null
  wait "${servers[@]}" 2>/dev/null
  return $rc
}
nobody_serves() { # CLIENT ADDRESS
  timeout 20 datping --ia "$1" --to "$2:65536" --count 1 > /tmp/said 2>&1 && return 1
  cat /tmp/said
  grep -q 'nobody serves there' /tmp/said
}
# The ports of 65536, the first COUNT of which have programs of another protocol while the command runs.
ports=(20212 20169 20126 20083 20040 19997 19954 19911)
among_strangers() { # COUNT COMMAND...
  local port strangers=() rc=0
  for port in "${ports[@]:0:$1}"; do
    nc -ll -p "$port" -e /tmp/stranger &
    strangers+=($!)
  done
  for port in "${ports[@]:0:$1}"; do
    until grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port") [0-9A-F:]+ 0A" /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
  done
  "${@:2}" || rc=$?
  kill "${strangers[@]}"
  wait "${strangers[@]}" 2>/dev/null
  return $rc
}
# What it says is as long as the head of an MPA frame, and ends in a length of 0: with another one soft-iWARP of Linux 6.1
# copies private data that are not there, and the kernel crashes.
cat > /tmp/stranger <<'END'
#!/bin/sh
printf '220 example.org MT\0\0'
sleep 1
END
chmod 755 /tmp/stranger

check "datinfo lists verbs-rxe0" lists verbs-rxe0 10.88.0.1
check "datinfo lists verbs-siw1" lists verbs-siw1 10.89.0.1
for ia in verbs-rxe0 verbs-siw1; do
  for options in "" "--srq" "--size 64KiB" "--size 1MiB --srq --count 20" "--size 0"; do
    # shellcheck disable=SC2086  # several words, or none
    check "datping --ia $ia $options" timeout 60 datping --ia $ia $options
  done
  check "datperf lat over $ia" timeout 60 datperf lat --ia $ia --size 64 --iters 200
  # Fewer than the 256 receives that the server has: over soft-iWARP a message without one ends the connection, and a server
  # that is not given a processor does not post.
  check "datperf bw over $ia" timeout 60 datperf bw --ia $ia --size 4KiB --iters 200 --srq
  check "datperf of Writes over $ia" timeout 60 datperf bw --ia $ia --op write --size 64KiB --iters 50
  check "datperf of Reads over $ia" timeout 60 datperf bw --ia $ia --op read --size 64KiB --iters 50
done
check "from rxe1 to rxe0" across verbs-rxe0 verbs-rxe1 10.88.0.1
check "from rxe1 to rxe0, shared queues" across verbs-rxe0 verbs-rxe1 10.88.0.1 --srq
check "from siw2 to siw1" across verbs-siw1 verbs-siw2 10.89.0.1
check "from siw2 to siw1, shared queues" across verbs-siw1 verbs-siw2 10.89.0.1 --srq
check "qualifiers that are no ports, from rxe1 to rxe0" qualifiers verbs-rxe0 verbs-rxe1 10.88.0.1
check "qualifiers that are no ports, from siw2 to siw1" qualifiers verbs-siw1 verbs-siw2 10.89.0.1
check "qualifiers that are no ports, from soft to siw1" qualifiers verbs-siw1 soft-wx1 10.89.0.1
check "qualifiers that are no ports, from siw2 to soft" qualifiers soft-wx0 verbs-siw2 10.89.0.1
check "one that is at its second port, from siw2 to siw1" among_strangers 1 qualifiers verbs-siw1 verbs-siw2 10.89.0.1
check "one whose ports are all strangers', from siw2" among_strangers 8 nobody_serves verbs-siw2 10.89.0.1
check "such a qualifier of nobody, from rxe1" nobody_serves verbs-rxe1 10.88.0.1
check "such a qualifier of nobody, from siw2" nobody_serves verbs-siw2 10.89.0.1

# rxe1 goes while it is in use: its connection breaks, what is said of it is one sentence, and rxe0 is as it was.
removal() {
  local client
  rm -f /tmp/server
  datping --serve --ia verbs-rxe0 --qual 17180 > /tmp/server 2>&1 &
  local server=$!
  until_serving $server /tmp/server || return 1
  timeout 60 datping --ia verbs-rxe1 --to 10.88.0.1:17180 --count 1000000 > /tmp/client 2>&1 &
  client=$!
  until rdma resource show qp link rxe1 | grep -q 'type RC state RTS'; do
    kill -0 $client 2>/dev/null || { cat /tmp/client && return 1; }
    sleep 0.1
  done
  timeout 30 rdma link delete rxe1 || return 1
  wait $client && return 1
  kill $server
  cat /tmp/client
  [ "$(grep -c 'verbs-rxe1: the device has gone' /tmp/client)" = 1 ] || return 1
  # The first request that was under way says what happened, the others follow it.
  grep -qE 'FLUSHED|BROKEN|TRANSPORT' /tmp/client || return 1
  timeout 60 datping --ia verbs-rxe0 --count 10
}
check "a device that is removed" removal
check "without the module" without_module says 'is not installed$'
check "with a module that is none" with_bad_module says 'does not load'
chmod 600 /dev/infiniband/*
check "without rights on the device files" says '(Permission denied|missing)' as_nobody
chmod 666 /dev/infiniband/*
mv /dev/infiniband /dev/infiniband.away
check "without the device files" says '(cannot be|missing|not to be had)'
mv /dev/infiniband.away /dev/infiniband
check "and it works again" timeout 60 datping --ia verbs-rxe0
summary
