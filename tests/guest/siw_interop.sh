#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Our TCP wire, in processes of this host, against Linux's soft-iWARP in the guest: Sends, Reads and Writes of rping, each
# side once the one that connects, with CRCs and without.
set -euo pipefail
here=$(dirname "$0")
. "$here/../../scripts/lib.sh"
[ $# -eq 2 ] || die "usage: siw_interop.sh FOLDER_OF_PROGRAMS GUEST_FOLDER"
bin=$1 guest=$2
[ -s "$guest/initramfs" ] || { say "skipped: there is no guest in $guest"; exit 77; }
work=$(mktemp -d)
started=()
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

rounds=20
# Each of our processes: NAME CRC ROLE SIZE. A client talks to an rping server in the guest, a server to an rping client.
cases=('client_crc on client 64' 'client_bare off client 64' 'client_long on client 60000'
  'server_crc on server 64' 'server_bare off server 64' 'server_long off server 60000')

in_guest='test -e /sys/class/infiniband/siw0 || { echo no siw0; exit 3; }; set -e;'
forwards=()
guest_port=7200
for case in "${cases[@]}"; do
  read -r name crc role size <<<"$case"
  if [ "$role" = server ]; then
    DAT_WIRE=tcp DAT_CRC=$crc "$bin/tests/dat_rping" server --ia soft-lo --size "$size" --count $rounds >"$work/$name" 2>&1 &
    started+=($!)
    for ((tries = 0; tries < 200; ++tries)); do
      grep -qs 'serving on' "$work/$name" && break
      sleep 0.05
    done
    port=$(sed -n 's/serving on //p' "$work/$name")
    in_guest+=" echo $name; timeout 60 rping -c -a 10.0.2.2 -p $port -C $rounds -S $size -V;"
  else
    guest_port=$((guest_port + 1))
    # A port that is free: a program that takes it between here and the guest's start makes the guest fail, not lie.
    host_port=$((30000 + RANDOM % 2000))
    forwards+=(--hostfwd "$host_port:$guest_port")
    in_guest+=" echo $name; timeout 60 rping -s -a 10.0.2.15 -p $guest_port -C $rounds -S $size -V;"
    DAT_WIRE=tcp DAT_CRC=$crc "$bin/tests/dat_rping" client --ia soft-lo --to "127.0.0.1:$host_port" --size "$size" \
      --count $rounds >"$work/$name" 2>&1 &
    started+=($!)
  fi
done

code=0
"$here/run-guest.sh" --build "$guest" --timeout 240 --reach-host "${forwards[@]}" -- "$in_guest" >"$work/guest" 2>&1 || code=$?
if [ $code -eq 3 ]; then
  say "skipped: the guest has no soft-iWARP"
  exit 77
fi
[ $code -eq 0 ] || { cat "$work/guest" "$work"/client_* "$work"/server_*; die "the guest ended with $code"; }
for i in "${!cases[@]}"; do
  name=${cases[i]%% *}
  wait "${started[i]}" || die "$name failed: $(cat "$work/$name")"
  say "$name: $(tail -n 1 "$work/$name")"
done
