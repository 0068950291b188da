#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/check-comments.sh finds each of its words in any kind of comment, and none in strings, characters and names.
set -euo pipefail
repository=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src/nic" "$work/include" "$work/tests"

cat >"$work/src/nic/planted.cc" <<'END'
// The receiver wakes a thread; nobody_waits is a name.
const char* const told = "nobody listens // somebody does";
const char* const raw = R"x(whoever "asks" // likewise)x";
bool nobody = false, quote = '"' == '\'';
int thousands = 50'000;  // Whoever waits longer sleeps.
// A queue pair
// that nobody has.
int depth = 0;  // of one queue pair, as the next
END
cat >"$work/include/planted.h" <<'END'
/* The poller looks. */
/* Somebody else
 * looks, likewise. */
END
echo '// Nobody listens there.' >"$work/tests/planted_test.cc"

if found=$("$repository/scripts/check-comments.sh" "$work"); then
  echo "it finds nothing wrong"
  exit 1
fi
wanted='include/planted.h:2 Somebody
include/planted.h:3 likewise
src/nic/planted.cc:5 Whoever
src/nic/planted.cc:7 nobody
src/nic/planted.cc:8 as the next
tests/planted_test.cc:1 Nobody'
diff <(echo "$wanted") <(sed -E 's/: "([^"]*)".*/ \1/' <<<"$found")

rm "$work/include/planted.h" "$work/tests/planted_test.cc"
sed -i '5,$d' "$work/src/nic/planted.cc"
"$repository/scripts/check-comments.sh" "$work"
