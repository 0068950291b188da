# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of provider-test.sh, after guest-lib.sh.
export DAT_OVERRIDE=/tmp/dat.conf
for name in rxe0:rx0 rxe1:rx1; do
  echo "ofa-v2-${name%:*} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"${name#*:} 0\" \"\""
done > $DAT_OVERRIDE
# Without -b dtest registers 2 x 97 buffers of the largest message.
# passes SERVER_ADAPTER CLIENT_ADAPTER ADDRESS BY
passes() {
  wait_port=15828 check "dtest by $4" both dtest -b 65536 -P "$1" -- dtest -b 65536 -P "$2" -h "$3"
  cp /tmp/out /tmp/client
  local end
  for end in client server; do check "the $end says that it passed" grep -q "DAPL Test Complete. PASSED" /tmp/$end; done
}
passes ofa-v2-rxe0 ofa-v2-rxe1 10.88.0.1 "libdaplofa through our libdat2"
# The same program over our own adapters for the devices.
export DAT_OVERRIDE=/dev/null
passes verbs-rxe0 verbs-rxe1 10.88.0.1 "our libdat2 over soft-RoCE"
passes verbs-siw1 verbs-siw2 10.89.0.1 "our libdat2 over soft-iWARP"
summary
