#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What each call of the hot path costs in instructions of the library, locked operations and system calls, beside what
# bench/instructions.txt says. Unlike times, these counts are the same in every run and on a busy machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. bench/by_time.sh

usage() {
  cat <<END
Usage: bench/${0##*/} [--record] [--wire shm|tcp|all] [--build DIR] [--library DIR]
Counts under callgrind, with another process as the peer, and prints a table. Over shared memory, a count that is more than
$limit % above bench/instructions.txt fails (exit 1); TCP is only printed, since its counts depend on what the system hands
over at once, and so is a Write that is copied, which the peer puts in place itself where it is seen to poll. An empty dequeue,
whose work depends on the clock, may take $empty_limit % more. A count that is more than $first_limit % above that of
$first fails too, so that many small steps do not add up.
  --record       write bench/instructions.txt instead of comparing with it; with --library, print it
  --wire WIRE    count this wire only (default: all)
  --build DIR    use the programs of this build (default: build/release, brought up to date first)
  --library DIR  count the libdat.so.1 of this folder instead of the build's own; calls that it does not have are left out
Columns: kind of endpoint, call, how many in a row; instructions in libdat, locked operations and system calls of all of
them; then the reference and the worst change. "elsewhere" are instructions outside libdat, in the C library mostly: they
depend on the processor, and are not judged.
END
}

limit=3
empty_limit=10
first_limit=2
first=bench/instructions-3b47b7c.txt
record=false wires=(shm tcp) build='' library=''
while [ $# -gt 0 ]; do
  case $1 in
    --record) record=true ;;
    --wire)
      case ${2:?} in
        all) ;;
        shm | tcp) wires=("$2") ;;
        *) usage >&2 && exit 2 ;;
      esac
      shift
      ;;
    --build) build=$(realpath "${2:?}") && shift ;;
    --library) library=$(realpath "${2:?}") && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done

need_packages valgrind binutils
if [ -z "$build" ]; then
  build=build/release
  need_packages "${build_packages[@]}"
  mkdir -p "$build"
  quietly "$build.instructions.log" cmake --preset release
  quietly "$build.instructions.log" cmake --build --preset release --target dat instructions
fi
program=$build/bin/bench/instructions
[ -x "$program" ] || die "$build has no program instructions"
[ -n "$library" ] || library=$(realpath "$build/src")
[ -e "$library/libdat.so.1" ] || die "$library has no libdat.so.1"
reference=bench/instructions.txt

# Another compiler makes other instructions, so counts compare under the same one only.
compiler=$(readelf -p .comment "$library/libdat.so.1" | sed -n 's/^ *\[ *0\] *//p')

for variable in $(compgen -e DAT_ || true); do unset "$variable"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count WIRE ROUND: one run of the program; its lines are "WIRE KIND CALL N INSTRUCTIONS LOCKED SYSTEM ELSEWHERE".
count() {
  local folder=$work/$1.$2
  mkdir "$folder"
  DAT_WIRE=$1 LD_LIBRARY_PATH=$library timeout 120 nice valgrind --tool=callgrind \
    --separate-threads=yes --collect-bus=yes --collect-systime=yes --collect-atstart=no --toggle-collect=anydat_counted \
    --zero-before=anydat_counted --dump-after=anydat_counted --callgrind-out-file="$folder/profile" \
    "$program" --repetitions 25 >"$folder/list" 2>"$folder/log" || { tail -n 20 "$folder/log" >&2 && die "counting over $1 failed"; }
  # A profile lists, by object and function, the costs of the functions themselves; a line after "calls=" repeats those of
  # a callee. System calls are taken from there, because they are listed for functions even while nothing is collected.
  # Reading the clock is one under the simulator and none without it. What the library does by time is left out.
  awk -v wire="$1" -v folder="$folder" -v done_by_time="$by_time" -v calls_by_time="$by_time_calls" '
    function value(name) { return name in column && column[name] <= NF ? $(column[name]) : 0 }
    function named(text, names,   id, at) {
      at = index(text, " ")
      id = at ? substr(text, 1, at - 1) : text
      if (at) names[id] = substr(text, at + 1)
      return names[id]
    }
    {
      if ($4 != "ok") next
      ours = elsewhere = locked = calls = 0
      file = folder "/profile." FNR "-01"  # of the first thread
      split($0, what, " ")
      delete objects; delete functions; skip = 0
      while ((getline <file) > 0) {
        if (/^events:/) { for (i = 2; i <= NF; ++i) column[$i] = i }
        else if (/^ob=/) object = named(substr($0, 4), objects)
        else if (/^cob=/) named(substr($0, 5), objects)
        else if (/^fn=/) {
          current = named(substr($0, 4), functions)
          by_time = current ~ done_by_time
          inside = by_time && current !~ /Engine::poll_by_clock/  # which calls what is not by time, too
        }
        else if (/^cfn=/) callee = named(substr($0, 5), functions)
        else if (/^calls=/) skip = 1
        else if (/^[-+*0-9]/) {
          if (skip) {
            skip = 0
            if (callee == "anydat_counted") calls += value("sysCount")
            else if (callee ~ calls_by_time && !inside) calls -= value("sysCount")
            else if (callee ~ /^clock_gettime/ && !inside) calls -= value("sysCount")
            continue
          }
          if (by_time) continue
          if (object ~ /\/libdat\.so/) ours += value("Ir"); else elsewhere += value("Ir")
          locked += value("Ge")
        }
      }
      close(file)
      if (ours) print wire, what[1], what[2], what[3], ours, locked, calls, elsewhere
    }' "$folder/list" >>"$work/counts"
}

# undisturbed: of all counts of one thing one quarter from below, since what comes in between mostly adds to a count, and
# now and then takes away from it: the library's own thread has done the work. In the order of counting.
undisturbed() {
  sed 's/^/list /' "$work"/*.1/list | cat - "$work/counts" |
    awk '$1 == "list" { if (!($2 $3 $4 in place)) place[$2 $3 $4] = ++places; next } { print $1, place[$2 $3 $4], $0 }' |
    sort -k1,1 -k2,2n -k7,7n -k9,9n | cut -d' ' -f3- |
    awk 'function finish() { if (n) print line[int((n + 3) / 4)]; n = 0 }
         { key = $1 " " $2 " " $3 " " $4; if (key != last) finish(); last = key; line[++n] = $0 }
         END { finish() }'
}

# compare REFERENCE LIMIT WHOLE: the table; exit 1 if a count of shared memory is above its reference by more than its limit,
# or, if the reference is to be whole, has none or is not there.
compare() {
  local judged=1
  grep -qF "Compiled by $compiler" "$1" || judged=0
  awk -v limit="$2" -v empty_limit="$empty_limit" -v judged="$judged" -v whole="$3" '
    FNR == NR { if ($1 != "#") { key = $1 " " $2 " " $3 " " $4; for (i = 5; i <= 7; ++i) was[key, i] = $i; known[key] = 1 } next }
    FNR == 1 { printf "%-4s %-5s %-17s %2s %8s %6s %6s %9s   %8s %6s %6s %8s\n", "wire", "kind", "call", "n", "instr", "locked",
               "system", "elsewhere", "was", "locked", "system", "change" }
    { key = $1 " " $2 " " $3 " " $4
      judge = judged && $1 == "shm" && $3 != "rdma_write_copied"
      there[key] = 1
      printf "%-4s %-5s %-17s %2d %8d %6d %6d %9d", $1, $2, $3, $4, $5, $6, $7, $8
      if (!(key in known)) { printf "%s\n", judge && whole ? "   no reference" : ""; bad += judge && whole; next }
      worst = -100
      # One system call by itself, without an instruction of the library more, is the simulator at work.
      if ($7 == was[key, 7] + 1 && $5 <= was[key, 5]) $7 = was[key, 7]
      # Two locked operations in all of 64 are what one lock costs that is not biased at the moment, as was seen once; a
      # lock that each call takes shows in the shorter rows, and more instructions are judged in any case.
      if ($4 >= 64 && $6 <= was[key, 6] + 2) $6 = was[key, 6]
      for (i = 5; i <= 7; ++i) {
        change = was[key, i] > 0 ? ($i / was[key, i] - 1) * 100 : ($i > 0 ? 100 * $i : -100)
        if (change > worst) worst = change
      }
      too_many = judge && (worst > ($3 == "dequeue_empty" ? empty_limit : limit))
      printf "   %8d %6d %6d %+7.1f%%%s\n", was[key, 5], was[key, 6], was[key, 7], worst, too_many ? "  TOO MANY" : ""
      bad += too_many }
    END {
      for (key in known) {
        if (!whole || key !~ /^shm/ || key in there) continue
        print key ": NOT COUNTED"
        ++missing
      }
      exit bad > 0 || (judged && missing > 0)
    }
  ' "$1" - <<<"$counts"
}

for wire in "${wires[@]}"; do count "$wire" 1; done
counts=$(undisturbed)
if $record; then
  # A reference that something was in the way of lets everything pass.
  for round in 2 3 4 5; do count shm "$round"; done
  counts=$(undisturbed)
  {
    say "# What bench/instructions.sh has counted: wire, kind of endpoint, call, how many in a row; instructions in libdat, locked"
    say "# operations, system calls. A commit that changes this says why. Compiled by $compiler"
    cut -d' ' -f1-7 <<<"$counts" | grep '^shm '
  } >"$work/reference"
  [ "$library" = "$(realpath "$build/src")" ] || { cat "$work/reference" && exit 0; }
  cp "$work/reference" "$reference"
  say "$reference: $(grep -vc '^#' "$reference") counts"
  exit 0
fi

for file in "$reference" "$first"; do
  grep -qF "Compiled by $compiler" "$file" ||
    say "The library was compiled by $compiler, that of $file by another compiler: nothing is judged by it."
done
# A library of another version may lack calls of this one.
whole=0
[[ " ${wires[*]} " != *" shm "* || $library != "$(realpath "$build/src")" ]] || whole=1
# More runs if one does not do: what was in the way of the first is seldom in that of all.
for round in 2 3 4 5 6; do
  compare "$reference" "$limit" $whole >"$work/table" && compare "$first" "$first_limit" 0 >"$work/table" && break
  [[ " ${wires[*]} " == *" shm "* ]] || break
  count shm "$round"
  counts=$(undisturbed)
done
if ! compare "$reference" "$limit" $whole; then
  say "A call of the hot path costs more than $limit % over $reference, or could not be counted. Lower it, or change the file in a commit that says why."
  exit 1
fi
if ! compare "$first" "$first_limit" 0 >"$work/table"; then
  grep 'TOO MANY' "$work/table"
  say "A call of the hot path costs more than $first_limit % over $first, which does not change. Lower it."
  exit 1
fi
