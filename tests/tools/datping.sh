#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib.sh"

run 0 datping --count 20 --size 4KiB --srq
says '^20 sent, 20 came back verified, 0 damaged, 0 lost$'
run 0 datping --count 3 --size 1
run 0 datping --count 3 --size 1MiB --ia soft-lo
says '^3 sent, 3 came back verified'

start_server datping --serve --qual 0
run 0 datping --to "$server_at" --count 5
says "5 messages of 64 B to $server_at "
run 0 datping --to "$server_at" --count 5 --srq
stop_server

run 1 datping --to "$server_at" --count 1 --timeout 5 # no server is there any more
[ -s "$work/err" ] || die "a failure that says nothing"
run 1 datping --ia no-such-adapter
complains no-such-adapter
run 2 datping --count many
run 2 datping --no-such-option
say "datping is in order"
