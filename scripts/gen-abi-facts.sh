#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Turns the ABI table into macro rows that the tests compile as C and as C++.
#
#   scripts/gen-abi-facts.sh          writes tests/unit/abi_facts.inc
#   scripts/gen-abi-facts.sh --check  only tells whether that file is up to date
set -eu
cd "$(dirname "$0")/.."
table=tests/data/abi-x86_64.tsv
out=tests/unit/abi_facts.inc

generate() {
  awk -F '\t' '
    BEGIN {
      print "// SPDX-License-Identifier: BSD-3-Clause"
      print "// Written by scripts/gen-abi-facts.sh from tests/data/abi-x86_64.tsv. The includer defines the macros it wants."
      split("ENUMERATOR CONST POINTER STRING TYPE ENUM STRUCT FIELD SLOT OPEN_SLOT SYMBOL BARE_SYMBOL REDIRECT MACRO ALIAS " \
            "OTHER_ALIAS", names, " ")
      for (i = 1; i in names; i++) printf "#ifndef ABI_%s\n#define ABI_%s(...)\n#endif\n", names[i], names[i]
    }
    /^#/ || NF == 0 { next }
    function row(name, arguments) { printf "ABI_%s(%s)\n", name, arguments }
    $1 == "const" && $4 == "ptr" { row("POINTER", $2 ", " $3); next }
    $1 == "const" && $4 == "string" { row("STRING", $2 ", " $3); next }
    $1 == "const" && $5 ~ /^enum / { row("ENUMERATOR", $2 ", " $3 ", " $4 ", " substr($5, 6)); next }
    $1 == "const" { row("CONST", $2 ", " $3 ", " $4); next }
    $1 == "type" && $5 == "enum" { row("ENUM", $2 ", " $3 ", " $4 ", " $6); next }
    $1 == "type" { row("TYPE", $2 ", " $3 ", " $4); next }
    $1 == "struct" { row("STRUCT", $2 ", " $3 ", " $4 ", " $5); next }
    $1 == "field" { row("FIELD", $2 ", " $3 ", " $4 ", " $5); next }
    $1 == "slot" {
      call = $3
      sub(/_func$/, "", call)
      # The table opens an IA with fewer parameters than any call has, so that slot has no call to compare with.
      if (call == "ia_open") row("OPEN_SLOT", $2 ", " $3 ", " $4 ", DAT_IA_OPEN_FUNC")
      else row("SLOT", $2 ", " $3 ", " $4 ", DAT_" toupper(call) "_FUNC, dat_" call)
      next
    }
    $1 == "func" && $3 == "symbol" { row($5 == "-" ? "BARE_SYMBOL" : "SYMBOL", $2); next }
    $1 == "func" && $3 == "redirect" { row("REDIRECT", $2 ", " $4); next }
    $1 == "func" { row("MACRO", $2); next }
    $1 == "alias" && $3 ~ /^[A-Za-z0-9_]+$/ { row("ALIAS", $2 ", " $3); next }
    $1 == "alias" { row("OTHER_ALIAS", $2); next }
    { print "unknown row: " $0 > "/dev/stderr"; exit 1 }
    END { for (i = 1; i in names; i++) printf "#undef ABI_%s\n", names[i] }
  ' "$table"
}

case "${1:-}" in
  --check)
    if generate | cmp -s - "$out"; then exit 0; fi
    echo "$out is not what $table says; run scripts/gen-abi-facts.sh" >&2
    exit 1
    ;;
  "") generate > "$out.new" && mv "$out.new" "$out" ;;
  *) echo "usage: $0 [--check]" >&2; exit 2 ;;
esac
