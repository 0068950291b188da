# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of faults-test.sh, after guest-lib.sh. Argument: which tests of verbs_tests.
export ANYDAT_TEST_TIMEOUT_SCALE=3

# A port goes down under a stream of messages, and stays down: the connection breaks, and everybody comes back.
port_down() { # SERVER CLIENT ADDRESS NETWORK_DEVICE_OF_THE_CLIENT
  DAT_LOG=warn datping --serve --ia "$1" --qual 17182 > /tmp/server 2>&1 &
  local server=$! client rc=0 n=0
  until grep -q serving /tmp/server || [ $n -ge 100 ]; do
    sleep 0.1
    n=$((n + 1))
  done
  DAT_LOG=warn timeout 60 datping --ia "$2" --to "$3:17182" --count 100000000 > /tmp/client 2>&1 &
  client=$!
  sleep 2
  kill -0 $client || { cat /tmp/client; return 1; }
  ip link set "$4" down
  wait $client || rc=$?
  ip link set "$4" up
  kill $server 2>/dev/null
  wait $server
  tail -n 3 /tmp/client
  [ $rc != 0 ] && [ $rc != 124 ]
}

for adapter in verbs-rxe0 verbs-siw1; do
  check "failures made up over $adapter" env ANYDAT_TEST_ADAPTERS=$adapter timeout 120 verbs_tests "--gtest_filter=$1"
done
if [ "$1" = '*' ]; then
  check "a port of soft-RoCE goes down" port_down verbs-rxe0 verbs-rxe1 10.88.0.1 rx1
  check "it is said" grep -q 'verbs-rxe1: port 1 is down' /tmp/client
  check "a port of soft-iWARP goes down" port_down verbs-siw1 verbs-siw2 10.89.0.1 wx1
fi
summary
