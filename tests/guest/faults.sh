# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of faults-test.sh, after guest-lib.sh. Argument: which tests of verbs_tests.
export ANYDAT_TEST_TIMEOUT_SCALE=3

# A port goes down under a stream of messages, and stays down: the connection breaks, and everybody comes back.
port_down() { # SERVER CLIENT ADDRESS NETWORK_DEVICE_OF_THE_CLIENT
  rm -f /tmp/server
  DAT_LOG=warn datping --serve --ia "$1" --qual 17182 > /tmp/server 2>&1 &
  local server=$! client rc=0
  until_serving $server /tmp/server || return 1
  DAT_LOG=warn timeout 60 datping --ia "$2" --to "$3:17182" --count 100000000 > /tmp/client 2>&1 &
  client=$!
  # Some of the stream is behind it: the set-up takes a few frames.
  local frames=/sys/class/net/$4/statistics/tx_packets enough
  enough=$(($(<"$frames") + 200))
  while kill -0 $client && [ "$(<"$frames")" -lt $enough ]; do sleep 0.1; done
  kill -0 $client || { cat /tmp/client; return 1; }
  ip link set "$4" down
  wait $client || rc=$?
  ip link set "$4" up
  kill $server 2>/dev/null
  wait $server
  tail -n 3 /tmp/client
  [ $rc != 0 ] && [ $rc != 124 ]
}

# Further addresses of each pair of devices, which reach each other as the first do: see guest-init.sh.
ip -6 rule add pref 5 lookup local
for pair in rx:88 wx:89; do
  d=${pair%:*} net=${pair#*:}
  for n in 0 1; do
    ip addr add 10.$net.3.$((n + 1))/24 dev $d$n
    ip addr add fd00:$net::$((n + 1))/64 dev $d$n nodad
    ip rule add pref 20 from 10.$net.3.$((n + 1)) to 10.$net.3.$((2 - n)) lookup ${net}$n
    ip neigh add 10.$net.3.$((2 - n)) lladdr 02:00:0a:$net:00:0$((2 - n)) dev $d$n
    ip route add 10.$net.3.$((2 - n)) dev $d$n src 10.$net.3.$((n + 1)) table ${net}$n
  done
done
across() { # SERVER CLIENT ADDRESS
  rm -f /tmp/server
  datping --serve --ia "$1" --qual 17179 > /tmp/server 2>&1 &
  local pid=$! rc=0
  { until_serving $pid /tmp/server && timeout 20 datping --ia "$2" --to "$3:17179" --count 20; } || rc=$?
  kill $pid
  wait $pid
  return $rc
}

for adapter in verbs-rxe0:88 verbs-siw1:89; do
  net=${adapter#*:}
  check "failures, slow calls, addresses over ${adapter%:*}" env ANYDAT_TEST_ADAPTERS="${adapter%:*}" \
    ANYDAT_TEST_ADDRESSES="10.$net.0.1,10.$net.3.1,fd00:$net::1" \
    timeout 120 verbs_tests --gtest_brief=1 "--gtest_filter=$1"
done
if [ "$1" = '*' ]; then
  check "from rxe1 to the second address of rxe0" across verbs-rxe0 verbs-rxe1 10.88.3.1
  check "from siw2 to the second address of siw1" across verbs-siw1 verbs-siw2 10.89.3.1
  check "a port of soft-RoCE goes down" port_down verbs-rxe0 verbs-rxe1 10.88.0.1 rx1
  check "it is said" grep -q 'verbs-rxe1: port 1 is down' /tmp/client
  check "a port of soft-iWARP goes down" port_down verbs-siw1 verbs-siw2 10.89.0.1 wx1
fi
summary
