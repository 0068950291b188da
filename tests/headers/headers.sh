#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The published headers as a compiler sees them, without a library (D2-HDR-4, D2-HDR-5).
#
#   tests/headers/headers.sh C-COMPILER C++-COMPILER
#
# Each header compiles alone, as C and as C++, without a warning. Those of uDAPL 1.2 and of 2.0 in one translation unit are
# an error whose first line says so, in either order.
set -euo pipefail
c=${1:?C-COMPILER} cxx=${2:?C++-COMPILER}
cd "$(dirname "$0")/../../include"
failed=0
checked=0

# One line of code goes along, as C does not have an empty translation unit.
compile() { # LANGUAGE TEXT
  local compiler=$c standard=c11
  [ "$1" = c ] || compiler=$cxx standard=c++17
  timeout 60 "$compiler" -x "$1" -std=$standard -Wall -Wextra -pedantic -Werror -I. -fsyntax-only - 2>&1 \
    <<<"$2"$'\nint nothing;'
}

for language in c c++; do
  for header in dat/*.h dat2/*.h anydat/*.h; do
    checked=$((checked + 1))
    if ! said=$(compile "$language" "#include <$header>"); then
      printf '%s: <%s> does not compile alone:\n%s\n' "$language" "$header" "$said"
      failed=1
    fi
  done
  for order in "dat dat2" "dat2 dat"; do
    checked=$((checked + 1))
    read -r first second <<<"$order"
    if said=$(compile "$language" "#include <$first/udat.h>"$'\n'"#include <$second/udat.h>"); then
      echo "$language: <$first/udat.h> and then <$second/udat.h> compile"
      failed=1
    elif ! grep -m1 'error:' <<<"$said" | grep -q 'is included already: a translation unit uses either'; then
      printf '%s: <%s/udat.h> and then <%s/udat.h>: the first error is not the cause:\n%s\n' "$language" "$first" "$second" \
        "$(head -5 <<<"$said")"
      failed=1
    fi
  done
done
[ $failed = 0 ] && echo "headers: $checked checks"
exit $failed
