# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side: what Debian's DAPL 2.x does over rxe and siw, as a reference.
# Needs --deb libdapl2 --deb dapl2-utils --deb coreutils (for stdbuf: a program
# that hangs still shows how far it came); with dapl2-srq-probe in the extra
# folder that is run too.  Some of it fails: docs/verbs.md says what and why.
cat > /tmp/dat.conf <<CONF
ofa-v2-rxe0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "rx0 0" ""
ofa-v2-rxe1 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "rx1 0" ""
ofa-v2-siw1 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "wx0 0" ""
ofa-v2-siw2 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "wx1 0" ""
CONF
export DAT_OVERRIDE=/tmp/dat.conf
limit=${LIMIT:-40}
lines() { sed -n "$1" /tmp/out | tail -n "${2:-4}" | sed 's/^/     /'; }
end() { sed 's/^/     C| /' /tmp/out | tail -n "${1:-4}"; sed 's/^/     S| /' /tmp/server | tail -n "${1:-4}"; }

for net in rxe:0:1:10.88.0.1 siw:1:2:10.89.0.1; do
  IFS=: read -r d a b host <<< "$net"
  [ -e /sys/class/infiniband/$d$a ] || continue
  s=ofa-v2-$d$a c=ofa-v2-$d$b
  echo "--- $d: server $s at $host, client $c"

  # Without -b dtest registers 2 x 97 buffers of the largest message.
  wait_port=15828 check "$d dtest -b 65536" \
    both dtest -b 65536 -P $s -- dtest -b 65536 -P $c -h $host
  lines '/PingPong\|RDMA write\|RDMA read\|Complete/p' 6
  settle=2 check "$d dtestcm" both dtestcm -P $s -- dtestcm -P $c -h $host
  lines '/Connections\|CPS\|TOTAL/p' 4
  settle=2 check "$d dtestx" both dtestx -P $s -- dtestx -P $c -h $host
  lines '/PASSED\|FAIL\|[Ee]rror/p' 6
  # With SRQ it never ends: it waits for an event the kernel does not give.
  for o in "-S 0" "-S 1" "-S 1 -c 4 -B 8 -t 10"; do
    # shellcheck disable=SC2086
    settle=2 limit=15 check "$d dtestsrq $o" both stdbuf -oL dtestsrq $o -v -P $s -- \
      stdbuf -oL dtestsrq $o -v -P $c -h $host
    end 3
  done

  # dapltest: one server for all the clients.
  stdbuf -oL dapltest -T S -D $s > /tmp/dserver 2>&1 & dpid=$!
  sleep 2
  dt() { timeout "$limit" dapltest "$@"; }
  for o in "-i 200 -t 1 -w 1 client SR 1024 server SR 1024" \
    "-i 100 -t 2 -w 2 client SR 4096 server SR 4096 client RW 4096 server RR 4096" \
    "-i 50 -V -t 1 -w 1 client SR 256 4 client RW 65536 client RR 65536 server SR 256 4" \
    "-i 100 -P -t 1 -w 1 client SR 1024 server SR 1024" \
    "-i 100 -r -t 1 -w 2 client SR 1024 server SR 1024"; do
    # shellcheck disable=SC2086
    check "$d dapltest T $o" dt -T T -s $host -D $c $o
    lines '/Stats\|Total\|Time\|Trans\|KB\|RPC\|warn\|DT_/p' 8
  done
  for o in "-i 500 -p 8 RW 4096" "-i 500 -p 8 RR 4096" "-m p -i 500 -p 8 RW 65536"; do
    # shellcheck disable=SC2086
    check "$d dapltest P $o" dt -T P -s $host -D $c $o
    lines '/Iter\|Rate\|Ops\|Oper\|Avg\|Data\|Bandwidth\|Latency/p' 9
  done
  check "$d dapltest Q" dt -T Q -s $host -D $c
  n=0; while kill -0 $dpid 2>/dev/null && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
  kill -0 $dpid 2>/dev/null && { echo "     server still there after Q"; kill -9 $dpid; }
  for o in limit_ia limit_pz limit_cno limit_evd limit_ep limit_rsp limit_psp \
    limit_lmr limit_rpost; do
    check "$d dapltest L -m 20 $o" dt -T L -m 20 -D $c $o
  done
  if command -v dapl2-srq-probe > /dev/null; then
    check "$d dapl2-srq-probe" timeout 30 dapl2-srq-probe $s
    sed 's/^/     /' /tmp/out
  fi
done
summary
