#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that what docs/ says of the code is so where it can be told by names and numbers: the version of the layout that
# processes share, the timers and the locks that there are, the files and the tests that are named, the habits that are let be.
#
# Prints what is wrong, one line each. Exit 1 if there is anything.
set -euo pipefail
cd "$(dirname "$0")/.."

faults=0
fault() {
  printf '%s\n' "$*"
  faults=$((faults + 1))
}

# ---- The layout's version

in_code=$(sed -n 's/^inline constexpr std::uint32_t kVersion = \([0-9]*\);.*/\1/p' src/nic/soft/wire/shm/layout.h)
in_docs=$(tr '\n' ' ' <docs/wire-shm.md | sed -n 's/.*layout\.h`, version \([0-9]*\) of the layout.*/\1/p')
[ -n "$in_code" ] && [ "$in_code" = "$in_docs" ] ||
  fault "docs/wire-shm.md says layout version ${in_docs:-nothing}, src/nic/soft/wire/shm/layout.h ${in_code:-nothing}"

# ---- Timers and locks: each member of such a type has a place in docs/concurrency.md, under the name of its class

# members TYPES: "Class member" of each member of one of these types, which awk keeps by the class that is open there. A class
# begins at the margin, or in an unnamed namespace, and ends with a line "};".
members() {
  find src -name '*.h' -o -name '*.cc' | sort | xargs awk -v types="$1" '
    /^(class|struct) / && !/;$/ {
      name = $0
      sub(/^(class|struct) +(\[\[[^]]*\]\] +)?(ANYDAT_[A-Z_]+(\([^)]*\))? +)?/, "", name)
      sub(/[^A-Za-z0-9_].*/, "", name)
    }
    FNR == 1 && !/^(class|struct) / { name = "" }
    /^};/ { name = "" }
    name != "" && $0 ~ "^  (mutable )?(nic::|os::|base::|std::)?(" types ") [a-z_]+( ANYDAT_[A-Z_]+\\([^)]*\\))?(;|\\{)" {
      line = $0
      sub("^  (mutable )?(nic::|os::|base::|std::)?(" types ") ", "", line)
      sub(/[^a-z_].*/, "", line)
      print name, line
    }'
}

timers=$(members Timer)
while read -r class member; do
  grep -qE "\`([a-z]+::)*$class::$member\`" docs/concurrency.md || fault "docs/concurrency.md does not list the timer $class::$member"
done <<<"$timers"

# A lock is told of by its name in the row of its class.
while read -r class member; do
  grep -E "(^|[^A-Za-z])$class([^A-Za-z]|$)" docs/concurrency.md | grep -qE "(\`|::)$member|(its|the) lock|itself" ||
    fault "docs/concurrency.md does not list the lock $class::$member"
done < <(members 'SpinLock|Mutex|mutex')

# The other way round: what it lists is there.
while IFS=: read -r class member; do
  grep -qx "$class $member" <<<"$timers" || fault "docs/concurrency.md lists a timer $class::$member, which does not exist"
done < <(grep -oE '`([a-z]+::)*[A-Z][A-Za-z]*::[a-z_]+_timer_`' docs/concurrency.md | tr -d '`' | sed -E 's/^([a-z]+::)*//; s/::/:/' | sort -u)

# ---- Files of ours that the docs name

files=$(find . -type f -not -path './build/*' -not -path './.git/*')
while IFS=$'\t' read -r page name; do
  grep -qE "(^|/)${name//./\\.}\$" <<<"$files" || fault "$page names $name, which does not exist"
done < <(grep -oHE '`[a-z0-9_/.-]+\.(cc|h|sh|def)`' docs/*.md CONTRIBUTING.md tests/README.md | tr -d '`' | sed 's/:/\t/' | sort -u)

# ---- Tests that the docs and the table of habits name, `Suite.Name` or `Suite.*`

tests=$(find tests -name '*.cc' -exec grep -hoE 'TEST(_F|_P)?\(\w+, *\w+' {} + | sed -E 's/TEST(_F|_P)?\((\w+), *(\w+)/\2.\3/')
while IFS=$'\t' read -r page name; do
  case $name in
    *.\*) grep -qF "${name%\*}" <<<"$tests" ;;
    *) grep -qxF "$name" <<<"$tests" ;;
  esac || fault "$page names the test $name, which does not exist"
done < <({
  grep -oHE '`[A-Z][A-Za-z0-9]+\.([A-Z][A-Za-z0-9]+|\*)`' docs/*.md docs/spec/*.md CONTRIBUTING.md tests/README.md
  grep -oHE '"[A-Z][A-Za-z0-9]+\.[A-Z][A-Za-z0-9]+"' src/face/habits.cc
} | tr -d '`"' | sed 's/:/\t/' | sort -u)

# ---- Habits: each row of the table in the face has one line in docs/porting.md, which names the same setting; and no line
# there tells of a setting that no row has

# habit_rows: "SETTING<tab>how its line begins" of each row. A text may be of several literals; the last one is what is wanted.
habit_rows() {
  perl -0777 -ne '
    while (/HabitRow\{(.*?)"\s*\},?\s*\n/sg) {
      my $row = "$1\"";
      my ($from) = $row =~ /Compat::(\w+)/;
      my @texts = $row =~ /((?:"(?:[^"\\]|\\.)*"\s*)+)(?:,|$)/g;
      my $told = $texts[-1] =~ s/"\s*"//gr =~ s/^"|"\s*$//gr;
      print $from eq "strict" ? "any" : $from =~ s/_$//r, "\t$told\n";
    }' src/face/habits.cc
}

rows=$(habit_rows)
[ "$(grep -c . <<<"$rows")" = "$(grep -c 'HabitRow{' src/face/habits.cc)" ] || fault "not each row of src/face/habits.cc can be read"
habit_lines=$(sed -n '/^| habit | from |/,/^$/p' docs/porting.md)
while IFS=$'\t' read -r setting told; do
  line=$(grep -F "| $told" <<<"$habit_lines" || true)
  [ "$(grep -cF "| $told" <<<"$line")" = 1 ] || { fault "docs/porting.md has not one line for the habit '$told'" && continue; }
  [ "$(cut -d '|' -f 3 <<<"$line")" = " $setting " ] || fault "docs/porting.md tells the habit '$told' of another setting than $setting"
done <<<"$rows"
while IFS= read -r line; do
  found=$(while IFS=$'\t' read -r setting told; do [[ $line != "| $told"* ]] || printf x; done <<<"$rows")
  [ -n "$found" ] || fault "docs/porting.md tells a habit that src/face/habits.cc has no row for: ${line:0:80}"
done < <(grep -E '^\|[^|]+\| (default|openfabrics) \|' <<<"$habit_lines")

# What bench/by_time.sh leaves out of counts is named as the code names it; of functions of the C library nothing is known.
. bench/by_time.sh
while IFS= read -r name; do
  grep -rqE "\b$name" src || fault "bench/by_time.sh names '$name', which src does not have"
done < <(sed -E 's/\|\^[^|]*//g' <<<"${by_time:?}|${by_time_calls:?}" | grep -oE '[A-Za-z_]{4,}' | sort -u)

[ $faults -eq 0 ]
