#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What scripts/check-arrows.sh finds where it is planted, in a tree of a few files, and that it finds nothing else there.
#
#   arrows.sh SCRIPT COMPILER
set -euo pipefail
script=$(realpath "$1")
compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{src/os,src/nic/soft,include,tools,examples,tests/wire/sim,build/src}
faults=0

# file PATH: its text comes in; the object of a source is made in the place of a build.
file() {
  cat >"$work/src/$1"
  [ "${1##*.}" = cc ] || return 0
  mkdir -p "$work/build/src/any.dir/$(dirname "$1")"
  "$compiler" -std=c++20 -O1 -I"$work/src" -c "$work/src/$1" -o "$work/build/src/any.dir/$1.o"
}

# expect NAME CODE PATTERN: what the script says has the pattern, and its exit code is this.
expect() {
  local code=0 said
  said=$("$script" --objects "$work/build" "$work" 2>&1) || code=$?
  if [ "$code" != "$2" ] || ! grep -qE "$3" <<<"$said"; then
    printf '%s: exit code %s instead of %s, or nothing like "%s" in:\n%s\n' "$1" "$code" "$2" "$3" "$said"
    faults=$((faults + 1))
  fi
}

# gone PATH: takes away what was planted.
gone() { rm -f "$work/src/$1" "$work/build/src/any.dir/$1.o"; }

file os/bell.h <<'END'
#pragma once
namespace os { long ring(); }
END
file os/bell.cc <<'END'
#include "os/bell.h"
#include <sys/syscall.h>
#include <unistd.h>
long os::ring() { return syscall(SYS_getpid); }
END
file nic/soft/listener.cc <<'END'
#include <sys/socket.h>
#include <cstring>
#include <ctime>
#include <string>
#include "os/bell.h"
long listen(const char* name, timespec& now) {
  clock_gettime(CLOCK_MONOTONIC, &now);
  return os::ring() + static_cast<long>(std::string(name).size() + std::strlen(name)) + AF_INET;
}
END
expect "what is as it should be" 0 'objects of 2 files looked at, 0 calls'

for call in 'socket(2, 1, 0)' 'close(3)' 'read(0, nullptr, 0)' 'sched_yield()' 'syscall(39)' 'getpid()' 'poll(nullptr, 0, 0)'; do
  name=${call%%(*}
  file nic/soft/caller.cc <<<"extern \"C\" long $name(...); long call() { return $call; }"
  expect "$name" 1 "^src/nic/soft/caller.cc: calls $name:"
done
file nic/soft/caller.cc <<'END'
#include <filesystem>
bool call(const char* path) { return std::filesystem::exists(path); }
END
expect "a call in other clothes" 1 '^src/nic/soft/caller.cc: calls _ZNSt10filesystem'
expect "a header that has calls only" 1 '^src/nic/soft/caller.cc:1: src/nic/soft must not include filesystem'
gone nic/soft/caller.cc

file nic/wanted.h <<<'#include "nic/soft/listener.h"'
expect "an include that points up" 1 '^src/nic/wanted.h:1: src/nic must not include nic/soft/listener.h'
file nic/wanted.h <<<'#include <sys/mman.h>'
expect "a header of the system" 1 '^src/nic/wanted.h:1: src/nic must not include sys/mman.h'
gone nic/wanted.h

file os/bell.h <<<'namespace os { long ring(); long read_all(int fd); }'
file os/reader.cc <<'END'
#include "os/bell.h"
#include <unistd.h>
long os::read_all(int fd) { return pread(fd, nullptr, 0, 0); }
END
expect "a point at which a thread may be cancelled" 1 '^src/os/reader.cc: calls pread(64)?: a thread may be cancelled there'
gone os/reader.cc

echo '#include "os/bell.h"' >"$work/tools/planted.cc"
expect "a tool that reaches into the library" 1 '^tools/planted.cc:1: tools must not include os/bell.h'
rm "$work/tools/planted.cc"

gone os/bell.cc
expect "a build without objects of os" 1 'is this the right build'
[ $faults = 0 ] && echo "check-arrows.sh finds what it is to find"
