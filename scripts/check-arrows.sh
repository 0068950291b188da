#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that a room of the house includes only what lies under it (docs/architecture.md).
#
#   scripts/check-arrows.sh          checks src, include, tools, examples and the tests' own wire of this repository
#   scripts/check-arrows.sh FOLDER   checks those folders of another tree
#
# Prints file:line, what is wrong and what to do for each include that points up or sideways. Exit 1 if there is any.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# A room (the longest matching folder counts), the rooms it may include, the angle-bracket headers it may not, and what
# to do instead. The columns are separated by tabs.
rooms=$(
  cat <<'END'
src/base	base/	^(dat2?|anydat|infiniband|rdma)/	base knows nothing of DAT and nothing above it: pass in what it needs
src/os	base/ os/	^(dat2?|anydat|infiniband|rdma)/	os is the system as we use it, and knows nothing of what it is used for: pass in what it needs
src/nic	base/ os/ nic/*	^(dat2?|anydat|infiniband|rdma)/	the seam has plain types of its own: define what is missing in nic/types.h
src/nic/soft	base/ os/ nic/* nic/soft/	^(dat2?|anydat|infiniband|rdma)/	the software NIC reports through the interfaces of nic/adapter.h
src/nic/soft/wire/shm	base/ os/ nic/* nic/soft/* nic/soft/wire/shm/	^(dat2?|anydat|infiniband|rdma)/	wires do not know each other: what they share belongs into nic/soft
src/nic/soft/wire/iwarp	base/ os/ nic/* nic/soft/* nic/soft/wire/iwarp/	^(dat2?|anydat|infiniband|rdma)/	wires do not know each other: what they share belongs into nic/soft
src/nic/soft/wire/iwarp/format	base/ os/ nic/* nic/soft/wire/iwarp/format/	^(dat2?|anydat|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp|poll|netdb)	the format is bytes in, values out: sockets belong into nic/soft/wire/iwarp
src/nic/verbs	base/ os/ nic/* nic/verbs/	^(dat2?|anydat)/	the hardware NIC reports through the interfaces of nic/adapter.h
src/dapl	base/ os/ nic/* dapl/	^(dat2?|anydat|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp|poll|sys/eventfd|netdb)	DAT objects ask the NIC through nic/adapter.h and know no socket, no verbs, no C header and no caller
src/registry	base/ os/ nic/* nic/soft/* nic/verbs/* dapl/error.h registry/ face/dat.h version.h	^(infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	the registry finds providers: talking to a peer belongs into a NIC
src/face	*	^(infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	entry points translate and call: behaviour belongs into the objects
src/face12	dapl/ face/ face12/ os/cancel.h registry/registry.h	^(dat2|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	only what is particular to version 1.2 of the interface stands here
src/face20	base/print.h dapl/ face/ face20/ os/cancel.h registry/registry.h	^(dat/|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	only what is particular to version 2.0 of the interface stands here
include	-	^(infiniband|rdma|anydat/.*/)	published headers stand alone: include only <dat/...>, <anydat/...> or the system's
include/dat	-	^(infiniband|rdma|anydat|dat2)/	the headers of 1.2 and of 2.0 stand apart: include only <dat/...> or the system's
include/dat2	-	^(infiniband|rdma|anydat|dat)/	the headers of 1.2 and of 2.0 stand apart: include only <dat2/...> or the system's
tools	-	^(infiniband|rdma)/	tools are programs of the public API: include <dat/udat.h> or <anydat/anydat.h>
examples	-	^(infiniband|rdma)/	examples are programs of the public API: include <dat/udat.h> or <anydat/anydat.h>
tests/wire/sim	base/ os/ nic/* nic/soft/* wire/sim/ nic/soft/wire/iwarp/format/	^(dat2?|anydat|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp|poll|netdb)	the simulated network is in one process: it has no sockets and knows no other wire
END
)

find src include tools examples tests/wire/sim -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.inc' | sort |
  xargs -r grep -HnE '^[[:space:]]*#[[:space:]]*include' |
  awk -v rooms="$rooms" '
    BEGIN {
      count = split(rooms, rows, "\n")
      for (i = 1; i <= count; i++) {
        split(rows[i], columns, "\t")
        allowed[columns[1]] = columns[2]
        banned[columns[1]] = columns[3]
        advice[columns[1]] = columns[4]
      }
    }

    # The room of a file: its longest folder that has a row.
    function room_of(path) {
      while (sub(/\/[^\/]*$/, "", path)) if (path in allowed) return path
      return ""
    }

    # "x/" allows a folder and all in it, "x/*" the headers of x itself, "x.h" one header, "*" everything.
    function permits(list, header,    parts, n, i, prefix, rest) {
      n = split(list, parts, " ")
      for (i = 1; i <= n; i++) {
        if (parts[i] == "*" || parts[i] == header) return 1
        prefix = parts[i]
        if (sub(/\*$/, "", prefix)) {
          rest = substr(header, length(prefix) + 1)
          if (index(header, prefix) == 1 && rest !~ /\//) return 1
        } else if (prefix ~ /\/$/ && index(header, prefix) == 1) return 1
      }
      return 0
    }

    {
      split($0, place, ":")
      file = place[1]
      room = room_of(file)
      if (room == "") next
      if (match($0, /"[^"]+"/)) {
        header = substr($0, RSTART + 1, RLENGTH - 2)
        # Programs and published headers have neighbours; what they may not reach is a room of the library.
        if (allowed[room] == "-") wrong = header ~ /^(\.\.\/)*(src\/)?(base|nic|dapl|registry|face|face12|face20)\//
        else wrong = !permits(allowed[room], header)
      } else if (match($0, /<[^>]+>/)) {
        header = substr($0, RSTART + 1, RLENGTH - 2)
        wrong = header ~ banned[room]
      } else next
      checked++
      if (wrong) {
        printf "%s:%s: %s must not include %s: %s\n", file, place[2], room, header, advice[room]
        bad++
      }
    }

    END {
      if (checked == 0) { print "no include was found: is this the right folder?"; exit 1 }
      printf "arrows: %d includes checked, %d wrong\n", checked, bad
      exit(bad > 0)
    }
  '
