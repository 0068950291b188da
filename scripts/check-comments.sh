#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that comments name what acts: none has a word in the place of it (nobody, somebody, whoever, likewise, "as the next").
# Strings and names of the program may have such words.
#
#   scripts/check-comments.sh          checks src, include, tools, examples, bench and tests of this repository
#   scripts/check-comments.sh FOLDER   checks those folders of another tree
#
# Prints file:line and what to do for each such word. Exit 1 if there is any.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

mapfile -t folders < <(for folder in src include tools examples bench tests; do [ ! -d $folder ] || echo $folder; done)
[ ${#folders[@]} -gt 0 ] || { echo "there is no source in $PWD" >&2 && exit 2; }

# A number is taken whole, since its ' would begin a character; so are strings, in which // begins no comment.
# shellcheck disable=SC2016  # the $ are perl's
find "${folders[@]}" -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.def' -o -name '*.inc' | sort | xargs -r perl -0777 -ne '
  while (m{(?<comment>//[^\n]*|/\*.*?\*/)
          |R"(?<end>[^\s()\\]*)\(.*?\)\g{end}"
          |"(?:\\.|[^"\\])*"
          |\b\d[\w.]*(?:\x27\w+)*
          |\x27(?:\\.|[^\x27\\\n])+\x27}gsx) {
    next unless defined $+{comment};
    my $line = 1 + (substr($_, 0, $-[0]) =~ tr/\n//);
    for my $text (split /\n/, $+{comment}) {
      while ($text =~ /\b(nobody|somebody|whoever|likewise|as the next)\b/gi) {
        print "$ARGV:$line: \"$1\" in a comment: name the thing that acts, or say again what holds\n";
        $faults = 1;
      }
      ++$line;
    }
  }
  END { $? = 1 if $faults }' || exit 1
