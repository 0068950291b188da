#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that a room of the house includes only what lies under it, that the system is called by functions of src/os alone
# (docs/architecture.md), and that none of them ends a thread that is cancelled.
#
#   scripts/check-arrows.sh [--objects BUILD] [FOLDER]
#
# checks src, include, tools and examples of this repository, or of the tree in FOLDER; with --objects, also what the objects
# of that build of it call.
#
# Prints file:line, what is wrong and what to do for each include that points up or sideways, and for each object what it calls
# that it may not. Exit 1 if there is anything.
set -euo pipefail
objects=''
if [ "${1:-}" = --objects ]; then
  objects=$(realpath "${2:?}")
  shift 2
fi
cd "${1:-$(dirname "$0")/..}"

# A room (the longest matching folder counts), the rooms it may include, the angle-bracket headers it may not, and what
# to do instead. The columns are separated by tabs.
rooms=$(
  cat <<'END'
src/base	base/	^(dat2?|anydat|infiniband|rdma)/	base knows nothing of DAT and nothing above it: pass in what it needs
src/os	base/ os/	^(dat2?|anydat|infiniband|rdma)/	os is the system as we use it, and knows nothing of what it is used for: pass in what it needs
src/env	base/ os/ env/	^(dat2?|anydat|infiniband|rdma)/	env is what the environment of a process says and where it prints: nothing of DAT
src/nic	base/ os/ env/ nic/*	^(dat2?|anydat|infiniband|rdma)/	the seam has plain types of its own: define what is missing in nic/types.h
src/nic/soft	base/ os/ env/ nic/* nic/soft/	^(dat2?|anydat|infiniband|rdma)/	the software NIC reports through the interfaces of nic/adapter.h
src/nic/soft/wire/shm	base/ os/ env/ nic/* nic/soft/* nic/soft/wire/shm/	^(dat2?|anydat|infiniband|rdma)/	wires do not know each other: what they share belongs into nic/soft
src/nic/soft/wire/iwarp	base/ os/ env/ nic/* nic/soft/* nic/soft/wire/iwarp/	^(dat2?|anydat|infiniband|rdma)/	wires do not know each other: what they share belongs into nic/soft
src/nic/soft/wire/iwarp/format	base/ os/ env/ nic/* nic/soft/wire/iwarp/format/	^(dat2?|anydat|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp|poll|netdb)	the format is bytes in, values out: sockets belong into nic/soft/wire/iwarp
src/nic/verbs	base/ os/ env/ nic/* nic/verbs/	^(dat2?|anydat)/	the hardware NIC reports through the interfaces of nic/adapter.h
src/dapl	base/ os/ env/ nic/* dapl/	^(dat2?|anydat|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp|poll|sys/eventfd|netdb)	DAT objects ask the NIC through nic/adapter.h and know no socket, no verbs, no C header and no caller
src/registry	base/ os/ env/ nic/* nic/soft/* nic/verbs/* dapl/error.h registry/ face/dat.h version.h	^(infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	the registry finds providers: talking to a peer belongs into a NIC
src/face	*	^(infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	entry points translate and call: behaviour belongs into the objects
src/face12	dapl/ face/ face12/ os/cancel.h	^(dat2|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	only what is particular to version 1.2 of the interface stands here
src/face20	dapl/ env/print.h face/ face20/ os/cancel.h	^(dat/|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp)	only what is particular to version 2.0 of the interface stands here
include	-	^(infiniband|rdma|anydat/.*/)	published headers stand alone: include only <dat/...>, <anydat/...> or the system's
include/dat	-	^(infiniband|rdma|anydat|dat2)/	the headers of 1.2 and of 2.0 stand apart: include only <dat/...> or the system's
include/dat2	-	^(infiniband|rdma|anydat|dat)/	the headers of 1.2 and of 2.0 stand apart: include only <dat2/...> or the system's
tools	-	^(infiniband|rdma)/	tools are programs of the public API: include <dat/udat.h> or <anydat/anydat.h>
examples	-	^(infiniband|rdma)/	examples are programs of the public API: include <dat/udat.h> or <anydat/anydat.h>
tests/wire/sim	base/ os/ env/ nic/* nic/soft/* wire/sim/ nic/soft/wire/iwarp/format/	^(dat2?|anydat|infiniband|rdma|sys/socket|sys/epoll|sys/un|netinet/tcp|poll|netdb)	the simulated network is in one process: it has no sockets and knows no other wire
END
)

# These have nothing to offer but calls of the system.
only_calls='^(sys/(mman|syscall|ioctl|stat|statfs|vfs|resource|eventfd|un|file|wait|prctl)|fcntl|unistd|ifaddrs|sched|semaphore|signal|spawn|dirent|netdb|net/if|linux/.*)\\.h|^(csignal|filesystem|fstream|future)$'

wrong=0
find src include tools examples tests/wire/sim -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.inc' | sort |
  xargs -r grep -HnE '^[[:space:]]*#[[:space:]]*include' |
  awk -v rooms="$rooms" -v only_calls="$only_calls" -v library="$(find src -mindepth 1 -maxdepth 1 -type d -printf '%f|')none" '
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
        if (allowed[room] == "-") wrong = header ~ "^(\\.\\./)*(src/)?(" library ")/"
        else wrong = !permits(allowed[room], header)
      } else if (match($0, /<[^>]+>/)) {
        header = substr($0, RSTART + 1, RLENGTH - 2)
        wrong = header ~ banned[room]
        if (!wrong && room ~ /^src\// && room != "src/os" && header ~ only_calls) {
          printf "%s:%s: %s must not include %s: the system is called by functions of src/os\n", file, place[2], room, header
          bad++
        }
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
  ' || wrong=1
[ -n "$objects" ] || exit $wrong

# What objects above src/os may need that is written in C, each as a whole name. Anything else may be a call of the system.
#   the C library's functions that stay in the process, those among them that a compiler may put in line; texts of errors; the
#   end of it, as the program asks for it
allowed='mem(cpy|move|set|cmp|chr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|str|to[a-z]+|error|errordesc_np)|v?s?n?printf|bcmp|abort|exit|inet_ntop|[hn]to[hn][sl]|ceil|floor|round'
#   memory; what the compiler puts in by itself begins with two underscores
allowed+='|malloc|free|calloc|realloc|aligned_alloc|_Unwind_[A-Za-z]+|_GLOBAL_OFFSET_TABLE_'
#   inline functions of src/os: the clock (os/clock.h) and the switch of cancelling (os/cancel.h), which do not
#   enter the kernel
allowed+='|clock_gettime|pthread_setcancelstate'
#   the environment, which is memory of the process
allowed+='|secure_getenv|environ'
#   locks of the C++ library, where one waits for what takes as long as others like (registry, reaper, kernel_calls)
allowed+='|pthread_mutex_(un)?lock|pthread_self|pthread_once'
#   loading libraries is what the registry and nic/module.cc are there for
allowed+='|dl(open|close|sym|error|info|addr1?)'
#   libraries; and what a face exports
allowed+='|ibv_[a-z_0-9]+|rdma_[a-z_]+|crc32_iscsi|dat_[a-z_]+|anydat_[a-z_0-9]+'
# Of what is written in C++, what is a call of the system in other clothes.
clothed='^_ZNK?St(6thread|11this_thread|10filesystem|13random_device|1[34]basic_[io]?fstream)'

# Of what src/os calls, what ends a thread that has been cancelled (pthreads(7)): os/uncancelled.h has the like
# that does not. These stay: the sleeps of dat_evd_wait and dat_cno_wait; what has no other form, and is called with
# cancelling switched off; and what prints at a program's own wish.
points='p?read(64)?|p?write(64)?|p?(read|write)v(64)?|openat(64)?|open(64)?|creat|close|recv(from|m?msg)?|send(to|m?msg)?|accept4?|connect|p?poll|p?select|epoll_p?wait2?|(clock_)?nanosleep|u?sleep|[mf]d?a?t?a?sync|wait(id|pid|3|4)?|pthread_(join|testcancel|cond_(timed|clock)?wait)|sem_(timed|clock)?wait|pause|sig(timed|suspend)?wait(info)?|lockf|getifaddrs|getaddrinfo|getnameinfo|fopen(64)?|fread|fwrite|fclose|(open|read|close)dir(64)?|v?syslog|(posix_)?fallocate'
stay='src/os/poll.cc ppoll|src/os/nap.cc sem_clockwait|src/os/interface_addresses.cc getifaddrs|src/os/thread.cc pthread_join|src/os/output.cc (fwrite|syslog)'

list=$(mktemp)
trap 'rm -f "$list"' EXIT
# Objects of files that are gone lie about in a build.
find "$objects/src" -name '*.o' | sort | while read -r object; do
  source=src/${object##*.dir/}
  [ ! -f "${source%.o}" ] || printf '%s\n' "$object"
done | xargs -r nm -A -u | sed -E 's,^.*\.dir/([^:]*)\.o:.* ,src/\1 ,; s/@.*//' >"$list"
awk -v allowed="^($allowed)$" -v clothed="$clothed" -v points="^($points)$" -v stay="^($stay)$" '
  { sources[$1] = 1 }
  $1 ~ /^src\/os\// {
    calls += $2 == "syscall"
    if ($2 ~ points && $1 " " $2 !~ stay && !(($1, $2) in told)) {
      told[$1, $2] = 1
      printf "%s: calls %s: a thread may be cancelled there; os/uncancelled.h has, or gets, the like that it may not\n", $1, $2
      points_found++
    }
    next
  }
  {
    name = $2
    if (name ~ /^__.*(_chk|_2)$/) { sub(/^__/, "", name); sub(/_(chk|2)$/, "", name) }  # with a look at sizes or flags
    if (name ~ /^_Z/) fault = name ~ clothed
    else fault = name !~ allowed && name !~ /^__/
    if (fault && !(($1, name) in told)) {
      told[$1, name] = 1
      printf "%s: calls %s: if that is the system, it is for a function of src/os to do so\n", $1, name
      bad++
    }
  }
  END {
    for (one in sources) count++
    if (!calls) { print "no object was found that calls the system: is this the right build?"; exit 1 }
    printf "arrows: objects of %d files looked at, %d calls of the system above src/os\n", count, bad
    exit(bad + points_found > 0)
  }
' "$list" || wrong=1
exit $wrong
