#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that what docs/ says of the code is so where it can be told by names and numbers: the version of the layout that
# processes share, the timers and the locks that there are, the files and the tests that are named.
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
  find src -name '*.h' -o -name '*.cc' | grep -v /sim/ | sort | xargs awk -v types="$1" '
    /^(class|struct) / && !/;$/ {
      name = $0
      sub(/^(class|struct) +(\[\[[^]]*\]\] +)?(ANYDAT_[A-Z_]+(\([^)]*\))? +)?/, "", name)
      sub(/[^A-Za-z0-9_].*/, "", name)
    }
    FNR == 1 && !/^(class|struct) / { name = "" }
    /^};/ { name = "" }
    name != "" && $0 ~ "^  (mutable )?(nic::|base::|std::)?(" types ") [a-z_]+( ANYDAT_[A-Z_]+\\([^)]*\\))?(;|\\{)" {
      line = $0
      sub("^  (mutable )?(nic::|base::|std::)?(" types ") ", "", line)
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

[ $faults -eq 0 ]
