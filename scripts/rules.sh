#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Lists the rules of docs/spec that no test names, one a line: the ID, a tab, the start of its text.
#
#   scripts/rules.sh                  all rules of the parts that have a suite
#   scripts/rules.sh --chapter SRQ-   only those whose ID starts so
#   scripts/rules.sh --part 3         those of docs/spec/3-*.md
#   --results FILE...                 (last) without the tests that were skipped in a run: GoogleTest's XML or JSON, or the log
#                                     of ctest; over the wires shm and tcp, where a test has wires
#
# A part of docs/spec whose library does not exist yet (`later` below) is counted by --part alone. Its IDs are known all
# the same: a definition that stands twice and a test that names a wrong number are told.
#
# A test names a rule by its ID, also in a range: SRQ-ACC-1..3. It counts inside a TEST or in the comment that ends right
# above it, in the suites that are built on any machine; what the head of a file or a helper names is told to readers and
# shows nothing. A script or a program in C is one test. A rule that no test names is waived if it binds the Consumer
# alone (tag [C] in part 1) or stands in docs/waived-rules.txt (ID, tab, reason).
# The last line is "rules: N tested: M waived: K untested: U". Exit 1 while U is not 0, or a waiver is not in order.
set -euo pipefail
cd "$(dirname "$0")/.."

later=""

chapter=
part=
results=()
while [ $# -gt 0 ]; do
  case $1 in
    --chapter)
      chapter=${2:?--chapter needs the start of an ID}
      shift 2
      ;;
    --part)
      part=${2:?--part needs the number of a file of docs/spec}
      shift 2
      ;;
    --results)
      shift
      for file in "$@"; do
        [ -r "$file" ] || { printf '%s: cannot read %s\n' "$0" "$file" >&2 && exit 2; }
        results+=("$file")
      done
      break
      ;;
    *)
      sed -n '3,22s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
done

mapfile -t suites < <(find tests/{unit,conformance,process,wire,face20,hosts,verbs/host} -name '*.cc')
mapfile -t scripts < <(find tests -name '*.c' -o -name '*.sh' -o -name '*.inc' | grep -v -e ^tests/guest/ -e ^tests/fuzz/)

# Which file an awk line comes from is told by a variable set before the file's name, and so is whether its rules count.
specs=()
for file in docs/spec/*.md; do
  number=${file##*/}
  number=${number%%-*}
  if [ -n "$part" ]; then
    [ "$number" = "$part" ] && counts=1 || counts=0
  else
    case " $later " in *" $number "*) counts=0 ;; *) counts=1 ;; esac
  fi
  specs+=("counts=$counts" "$file")
done

awk -v chapter="$chapter" '
  # A definition: "- ID. text [tags]", "- `ID` text" or a table row "| `ID` text |".
  part == "spec" {
    if (match($0, /^- [A-Z][A-Z0-9-]*-[0-9]+\. /)) {
      id = substr($0, 3, RLENGTH - 4)
      consumer_only = $0 ~ /\[C\]/
    } else if (match($0, /^[-|] `[A-Z][A-Z0-9-]*-[0-9]+`/)) {
      id = substr($0, 4, RLENGTH - 4)
      consumer_only = 0
    } else next
    if (id in text) { print FILENAME ":" FNR ": " id " is defined twice" > "/dev/stderr"; broken = 1 }
    if (counts) order[++count] = id
    text[id] = substr($0, RSTART + RLENGTH)
    if (consumer_only) reason[id] = "Consumer"
    prefix = id
    sub(/[0-9]+$/, "", prefix)
    prefixes[prefix] = 1
    next
  }

  part == "waived" {
    if (/^#/ || NF == 0) next
    if (split($0, columns, "\t") != 2 || !(columns[1] in text)) {
      print FILENAME ":" FNR ": not a rule, a tab and a reason" > "/dev/stderr"
      broken = 1
    } else reason[columns[1]] = columns[2]
    next
  }

  # A run: which tests have been skipped, and which have not, by suite and name without what they were run with. Over
  # other wires than those that every run has a test shows nothing.
  function note_run(suite, name, skipped,   with) {
    sub(/.*\//, "", suite)
    with = name
    if (!sub(/[^\/]*\//, "", with)) with = ""
    sub(/\/.*/, "", name)
    if (skipped || with == "shm_ring") was_skipped[suite "." name] = 1
    else has_run[suite "." name] = 1
  }
  function value_of(line, key) {
    if (!match(line, " " key "=\"[^\"]*\"")) return ""
    return substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
  }
  part == "results" {
    if (/<testcase /) note_run(value_of($0, "classname"), value_of($0, "name"), value_of($0, "result") == "skipped")
    if (match($0, /"(name|result|classname)": "[^"]*"/)) {
      split(substr($0, RSTART, RLENGTH), quoted, "\"")
      member[quoted[2]] = quoted[4]
      if (quoted[2] == "classname") note_run(quoted[4], member["name"], member["result"] == "SKIPPED")
    }
    if (match($0, /Test +#[0-9]+: [^ ]+\.[^ ]+ /) && /(Passed|Skipped) /) {
      name = substr($0, RSTART, RLENGTH)
      sub(/.*: /, "", name)
      sub(/ $/, "", name)
      suite = name
      sub(/\..*/, "", suite)
      note_run(suite, substr(name, length(suite) + 2), /Skipped /)
    }
    next
  }

  # Every ID of a text, with its range. A wrong number of a chapter that exists is a slip worth telling.
  function note_rules(rest, counts_here,   id, first, last, prefix, number) {
    while (match(rest, /[A-Z][A-Z0-9-]*-[0-9]+(\.\.[0-9]+)?/)) {
      id = substr(rest, RSTART, RLENGTH)
      rest = substr(rest, RSTART + RLENGTH)
      last = id
      if (!sub(/.*\.\./, "", last)) { sub(/.*-/, "", last) }
      sub(/\.\..*/, "", id)
      first = id
      sub(/.*-/, "", first)
      prefix = substr(id, 1, length(id) - length(first))
      if (!(prefix in prefixes)) continue
      for (number = first + 0; number <= last + 0; number++) {
        if ((prefix number) in text) { if (counts_here) tested[prefix number] = 1 }
        else if (number == first + 0 || number == last + 0)
          print FILENAME ":" FNR ": no such rule: " prefix number > "/dev/stderr"
      }
    }
  }

  part == "scripts" {
    note_rules($0, 1)
    next
  }

  # A suite of GoogleTest.
  FNR == 1 { inside = 0; above = ""; head = "" }
  head != "" || /^(REGISTRY_)?TEST(_[A-Z])?\(/ {
    head = head $0
    if (head !~ /\)/) next
    inside = 1
    name = head
    sub(/^[A-Z_]+\( */, "", name)
    sub(/ *\).*/, "", name)
    sub(/, */, ".", name)
    runs = (name in has_run) || !(name in was_skipped)
    note_rules(above, runs)
    above = head = ""
  }
  {
    note_rules($0, inside && runs)
    if (inside && (/^}/ || /^TEST.*}$/)) inside = 0
    else if (!inside) above = /^ *\/\// ? above " " $0 : ""
  }

  END {
    for (i = 1; i <= count; i++) {
      id = order[i]
      if (chapter != "" && index(id, chapter) != 1) continue
      rules++
      if (id in tested) named++
      else if (id in reason) waived++
      else {
        untested++
        sub(/^[ |]+/, "", text[id])
        print id "\t" substr(text[id], 1, 100)
      }
    }
    printf "rules: %d tested: %d waived: %d untested: %d\n", rules, named, waived, untested
    exit(untested > 0 || broken ? 1 : 0)
  }
' part=spec "${specs[@]}" part=waived docs/waived-rules.txt part=results "${results[@]}" \
  part=scripts "${scripts[@]}" part=suites "${suites[@]}" /dev/null
