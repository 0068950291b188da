#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# iWARP by two implementations: the adapter soft on this host, over TCP, and soft-iWARP of the guest's kernel through
# verbs-siw0, each as the server of the other.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -eq 2 ] || die "usage: host-test.sh GUEST_FOLDER BUILD_FOLDER"
guest=$1 build=$2
image=$build/guest-host.initramfs
stage "$guest" "$build" "$image"
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
export DAT_WIRE=tcp DAT_LOG=warn

: >"$work/server" # it is read before the shell in the background has come to make it
"$build/bin/datping" --serve --ia soft --qual 0 >"$work/server" 2>&1 &
for _ in $(seq 100); do
  port=$(sed -n 's/.*serving on [^ ]*:\([0-9]*\) .*/\1/p' "$work/server")
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || die "datping does not serve: $(cat "$work/server")"

# The guest serves and says so (/host/serving), is a client of this host, and ends when this host has been its client
# (/host/done).
cat >"$work/in-guest.sh" <<'END'
datping --serve --ia verbs-siw0 --qual 7174 > /tmp/server 2>&1 &
for _ in $(seq 600); do grep -q serving /tmp/server && break; sleep 0.1; done
touch /host/serving
rc=0
for options in "--count 50" "--count 20 --size 64KiB --srq"; do
  timeout 60 datping --ia verbs-siw0 --to 10.0.2.2:$PORT $options || rc=1
done
for _ in $(seq 600); do [ -e /host/done ] && break; sleep 0.1; done
cat /tmp/server
[ -e /host/done ] && exit $rc
END
mkdir "$work/share"
# A forwarded port that another program has ends the guest at once; another one then serves as well.
for attempt in 1 2 3; do
  forwarded=$((20000 + RANDOM % 10000))
  "$here/run-guest.sh" --build "$guest" --image "$image" --timeout 150 --reach-host --hostfwd "$forwarded:7174" \
    --share "$work/share" --env "PORT=$port" --script "$work/in-guest.sh" >"$work/guest" 2>&1 &
  pid=$!
  # The forwarded port is open long before. A connection given up before the guest has accepted it closes soft-iWARP's
  # listening socket (Linux 6.1), so the test does not knock earlier. A guest that does not come so far ends when its time is over.
  while kill -0 $pid 2>/dev/null && [ ! -e "$work/share/serving" ]; do sleep 0.1; done
  [ ! -e "$work/share/serving" ] || break
  say "attempt $attempt: $(tail -n 1 "$work/guest")"
done
[ -e "$work/share/serving" ] || die "the guest does not serve: $(tail -n 20 "$work/guest")"

reached=yes
for options in "--count 50" "--count 20 --size 64KiB --srq"; do
  timeout 60 "$build/bin/datping" --ia soft --to "127.0.0.1:$forwarded" $options >>"$work/client" 2>&1 || reached=no
done
touch "$work/share/done"
rc=0
wait $pid || rc=$?
say "the guest's server, from here:"
cat "$work/client"
say "this host's server, from the guest (status $rc):"
cat "$work/guest"
[ $reached = yes ] && [ $rc = 0 ]
