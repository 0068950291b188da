#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that no function is longer than 60 lines and no file than 500, but for those that docs/architecture.md names with
# a reason, and that those are still so long. What is one table of constants is no function.
#
#   scripts/check-sizes.sh          checks src, include, tools, examples, bench and tests of this repository
#   scripts/check-sizes.sh FOLDER   checks those folders of another tree, with its docs/architecture.md
#
# Prints file:line and what is too long. Exit 1 if there is anything.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

mapfile -t folders < <(for folder in src include tools examples bench tests; do [ ! -d $folder ] || echo $folder; done)
[ ${#folders[@]} -gt 0 ] || { echo "there is no source in $PWD" >&2 && exit 2; }

# The rows of the table under "### Sizes": | `FILE` | `NAME` or whole | reason |
find "${folders[@]}" \( -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.inc' \) | sort | xargs awk -v table=docs/architecture.md '
  BEGIN {
    while ((getline line <table) > 0) {
      if (line ~ /^#/) in_table = line ~ /^### Sizes/
      if (!in_table || line !~ /^\| `/) continue
      split(line, cells, "|")
      gsub(/[` ]/, "", cells[2]); gsub(/^ +| +$|`/, "", cells[3])
      excepted[cells[2], cells[3]] = 1
    }
  }
  function too_long(what, name, line, text) {
    if ((what, name) in excepted) { met[what, name] = 1; return }
    printf "%s:%d: %s\n", what, line, text
    faults++
  }
  function file_ends() {
    if (lines > 500) too_long(file, "whole", 1, lines " lines; no file has more than 500")
  }
  # What stands before the parenthesis of a function, or in that of a test.
  function name_of(head) {
    if (match(head, /^TEST(_[FP])?\([^)]*\)/)) {
      head = substr(head, index(head, "(") + 1)
      sub(/\).*/, "", head)
      sub(/, */, ".", head)
      return head
    }
    sub(/\(.*/, "", head)
    sub(/ *$/, "", head)
    sub(/.*[ *&]/, "", head)
    return head
  }
  FNR == 1 { file_ends(); file = FILENAME; begun[0] = begun[2] = 0; head = "" }
  { lines = FNR }
  # A head begins at the margin, or at two columns for a member of a class, may go on for some lines, and ends in {. Within
  # a function nothing is looked for.
  function head_ends(column) {
    if (head ~ /\(/ && head !~ /^ *(class|struct|union|enum|namespace|extern) / && head !~ /= *\{$/) {
      begun[column] = head_line
      name[column] = name_of(head)
    }
    head = ""
  }
  {
    column = match($0, /[^ ]/) - 1
    if ((column == 0 || column == 2) && /^ *}/) {
      if (begun[column] && FNR - begun[column] + 1 > 60) {
        too_long(FILENAME, name[column], begun[column], name[column] " has " FNR - begun[column] + 1 " lines; no function has more than 60")
      }
      begun[column] = 0
    }
    if (begun[0] || (column == 2 && begun[2])) next
    if (head != "" && column > head_column) head = head " " $0
    else if ((column == 0 || column == 2) && /^ *[A-Za-z_~\[:]/) { head = $0; head_line = FNR; head_column = column }
    else head = ""
    if (head ~ /\{$/) head_ends(head_column)
    else if (head ~ /[;}]$/) head = ""
  }
  END {
    file_ends()
    for (one in excepted) {
      if (one in met) continue
      split(one, part, SUBSEP)
      printf "docs/architecture.md: %s of %s is not too long: take it out of the table\n", part[2], part[1]
      faults++
    }
    exit(faults > 0)
  }'
