#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Turns the ABI tables into macro rows that the tests compile as C and as C++.
#
#   scripts/gen-abi-facts.sh          writes tests/unit/abi_facts.inc (uDAPL 1.2) and tests/unit/abi2_facts.inc (2.0)
#   scripts/gen-abi-facts.sh --check  only tells whether those files are up to date
#
# scripts/measure-abi.sh is what the table of 2.0 is from.
set -eu
cd "$(dirname "$0")/.."

generate() { # TABLE
  awk -F '\t' -v table="$1" '
    # The arguments of a macro call, the first of which leads to the table.
    function arguments(count,    i, text) {
      text = "(handle"
      for (i = 2; i <= count; i++) text = text ", a" i
      return text ")"
    }
    BEGIN {
      print "// SPDX-License-Identifier: BSD-3-Clause"
      print "// Written by scripts/gen-abi-facts.sh from " table ". The includer defines the macros it wants."
      split("ENUMERATOR CONST POINTER STRING TYPE ENUM STRUCT FIELD SLOT OPEN_SLOT SYMBOL BARE_SYMBOL REDIRECT MACRO ALIAS " \
            "OTHER_ALIAS CALL_TYPE POINTER_TYPE REDIRECTION EXTENSION", names, " ")
      for (i = 1; i in names; i++) printf "#ifndef ABI_%s\n#define ABI_%s(...)\n#endif\n", names[i], names[i]
    }
    /^#/ || NF == 0 { next }
    function row(name, columns) { printf "ABI_%s(%s)\n", name, columns }
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
      # Nor have two of those that 2.0 added.
      else if (call ~ /^(ia_ha_related|handle_extendedop)$/) row("OPEN_SLOT", $2 ", " $3 ", " $4 ", " $5)
      else row("SLOT", $2 ", " $3 ", " $4 ", " (NF > 4 ? $5 : "DAT_" toupper(call) "_FUNC") ", dat_" call)
      next
    }
    $1 == "func" && $3 == "symbol" { row($5 == "-" ? "BARE_SYMBOL" : "SYMBOL", $2); next }
    $1 == "func" && $3 == "declared" { row("SYMBOL", $2); next }
    $1 == "func" && $3 == "redirect" && $5 ~ /^[0-9]+$/ {
      row("REDIRECTION", $2 ", " $4 ", " arguments($5))
      next
    }
    $1 == "func" && $3 == "extension" { row("EXTENSION", $2 ", " $4 ", " arguments($5)); next }
    $1 == "proto" { row($2 ~ /^dat/ ? "CALL_TYPE" : "POINTER_TYPE", $2 ", " $3); next }
    $1 == "func" && $3 == "redirect" { row("REDIRECT", $2 ", " $4); next }
    $1 == "func" { row("MACRO", $2); next }
    $1 == "alias" && $3 ~ /^[A-Za-z0-9_]+$/ { row("ALIAS", $2 ", " $3); next }
    $1 == "alias" { row("OTHER_ALIAS", $2); next }
    { print "unknown row: " $0 > "/dev/stderr"; exit 1 }
    END { for (i = 1; i in names; i++) printf "#undef ABI_%s\n", names[i] }
  ' "$1"
}

# TABLE OUT
write() {
  generate "$1" >"$2.new" && mv "$2.new" "$2"
}
check() {
  if generate "$1" | cmp -s - "$2"; then return; fi
  echo "$2 is not what $1 says; run scripts/gen-abi-facts.sh" >&2
  exit 1
}

case "${1:-}" in
  --check) step=check ;;
  "") step="write" ;;
  *) echo "usage: $0 [--check]" >&2; exit 2 ;;
esac
$step tests/data/abi-x86_64.tsv tests/unit/abi_facts.inc
$step tests/data/abi2-x86_64.tsv tests/unit/abi2_facts.inc
