# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of provider-test.sh, after guest-lib.sh.
export DAT_OVERRIDE=/tmp/dat.conf
for name in rxe0:rx0 rxe1:rx1; do
  echo "ofa-v2-${name%:*} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"${name#*:} 0\" \"\""
done > $DAT_OVERRIDE
# Without -b dtest registers 2 x 97 buffers of the largest message.
wait_port=15828 check "dtest by libdaplofa through our libdat2" \
  both dtest -b 65536 -P ofa-v2-rxe0 -- dtest -b 65536 -P ofa-v2-rxe1 -h 10.88.0.1
cp /tmp/out /tmp/client
for end in client server; do check "the $end says that it passed" grep -q "DAPL Test Complete. PASSED" /tmp/$end; done
summary
