#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the manual pages: that each is well-formed, that every exported call has one and no other name does, that each
# has the sections it should, that what it refers to exists, that all counters and environment variables are told of,
# that the C in EXAMPLES (and in docs/first-program.md) compiles, and, given the folder of the built tools, that each option of a
# tool is on its page and the other way round.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage() {
  cat <<END
Usage: scripts/check-man.sh [--tools DIR]
Prints what is wrong, one line each, and exits with 1 if there is anything. Exits with 77 if scdoc is not installed.
Example: scripts/check-man.sh --tools build/release/bin
END
}

tools=
while [ $# -gt 0 ]; do
  case $1 in
    --tools) tools=$(realpath "${2:?}") && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
if ! command -v scdoc >/dev/null; then
  say "scdoc is not installed (apt-get install scdoc); nothing was checked"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
fault() {
  say "$*"
  faults=$((faults + 1))
}

# ---- Every page by itself

sections_of() { # the sections that a page of this name must have, in order
  case $1 in
    *.1) echo 'NAME SYNOPSIS DESCRIPTION OPTIONS EXIT-STATUS EXAMPLES SEE-ALSO' ;;
    *.3) echo 'NAME SYNOPSIS DESCRIPTION RETURN-VALUES THREAD-SAFETY EXAMPLES SEE-ALSO' ;;
    *) echo 'NAME DESCRIPTION SEE-ALSO' ;;
  esac
}

for file in man/*.scd; do
  page=$(basename "$file" .scd) # dat_ep_create.3
  if ! scdoc <"$file" >"$work/page" 2>"$work/complaint"; then
    fault "$file: scdoc: $(head -n 1 "$work/complaint")"
    continue
  fi
  title=${page%.*}
  [[ $(head -n 1 "$file") == "$title(${page##*.})"* ]] || fault "$file: its first line does not say $title(${page##*.})"
  present=" $(sed -n 's/^# //p' "$file" | tr ' ' '-' | tr '\n' ' ')"
  rest=$present
  for section in $(sections_of "$page"); do
    if [[ $rest == *" $section "* ]]; then
      rest=" ${rest#*" $section "}"
    else
      fault "$file: section $section is missing or out of order"
    fi
  done
  grep -q "^$title - ." "$file" || fault "$file: NAME does not say '$title - ...'"
  # References to our own pages, as *dat_ep_create*(3).
  while read -r name number; do
    [ -f "man/$name.$number.scd" ] || fault "$file: refers to $name($number), for which there is no page"
  done < <(grep -oE '\*(any)?dat[a-z_.-]*\*\([1-8]\)' "$file" | tr -d '*)' | tr '(' ' ' | sort -u)
done

# ---- Every exported call

exports_of() { # LIBRARY
  sed -nE 's/^ +((any)?dats?_[a-z_]+);.*/\1/p' "src/$1.map" | grep -v '^anydat_' | sort
}

# dat_ia_open is the public name of dat_ia_openv. The other three are not for programs: two are what a registry calls in a
# Provider, one is undocumented and kept for old binaries.
calls=$(sed -nE 's/^ +((any)?dats?_[a-z_]+);.*/\1/p' src/libdat.map src/libdat2.map |
  sed 's/^dat_ia_openv$/dat_ia_open/' | grep -vxE 'dat_provider_init|dat_provider_fini|dats_get_ia_handle' | sort -u)
for call in $calls; do
  [ -f "man/$call.3.scd" ] || fault "$call is exported, and there is no page for it"
  if [ -f "man/$call.3.scd" ] && ! grep -qE "\b$call\(" "man/$call.3.scd"; then
    fault "man/$call.3.scd: SYNOPSIS does not declare $call"
  fi
done
# The calls of uDAPL 2.0 alone, and those whose parameters it has changed, are declared as in its headers.
while read -r call; do
  grep -q '^#include <dat2/udat.h>' "man/$call.3.scd" || fault "man/$call.3.scd: SYNOPSIS does not tell uDAPL 2.0's prototype"
done < <({ diff <(exports_of libdat) <(exports_of libdat2) | sed -n 's/^> //p' && printf 'dat_%s\n' cr_reject lmr_create rmr_bind; })
for file in man/*.3.scd; do
  call=$(basename "$file" .3.scd)
  grep -qx "$call" <<<"$calls" || fault "$file: $call is not exported"
done

# ---- What the code has tables of

while read -r name; do
  for file in man/anydat_get_counters.3.scd docs/counters.md; do
    grep -qE "[\`*]${name}[\`*]" "$file" || fault "$file: the counter $name is missing"
  done
done < <(grep -oE 'all\.add\("[a-z_]+"' src/dapl/counters.cc | cut -d'"' -f2 | sort -u)

# The environment variables, as the library itself tells them. Each is described in a paragraph of dat(7) that begins with
# its name and has every word that it can be, and its default; no other variable is.
if [ -n "$tools" ]; then
  awk '/^# / {on = $0 == "# ENVIRONMENT"} on' man/dat.7.scd >"$work/environment"
  env -i "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}" "$tools/datinfo" --env | sed -n 's/^\(DAT_[A-Z_]*\)$/\1/p' | sort >"$work/has"
  grep -E '^\*DAT_' "$work/environment" | grep -oE 'DAT_[A-Z_]+' | sort >"$work/tells"
  while read -r name; do fault "man/dat.7.scd: the environment variable $name is missing"; done < \
    <(comm -23 "$work/has" "$work/tells")
  while read -r name; do fault "man/dat.7.scd: there is no environment variable $name"; done < \
    <(comm -13 "$work/has" "$work/tells")
  while IFS=: read -r name words; do
    awk -v name="*$name*" 'index($0, name) == 1 {on = 1} /^$/ {on = 0} on' "$work/environment" >"$work/paragraph"
    IFS=';' read -ra words <<<"$words"
    for word in "${words[@]}"; do
      grep -qF "_${word}_" "$work/paragraph" || fault "man/dat.7.scd: $name can be '$word', which is not told"
    done
  done < <(env -i "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}" "$tools/datinfo" --env | awk '
    /^DAT_/ {name = $1}
    $1 == "meaning" {deaf = /without effect/}
    $1 == "values" {sub(/^ *values +/, ""); gsub(/, /, ";"); words = $0}
    $1 == "default" && !deaf {print name ":" ($2 ~ /^\// ? $2 : words ";" $2)}')
fi

# ---- The C in the examples

# Prints the literal blocks of a section, each behind a line "@ <first line number>".
blocks_of() { # FILE SECTION
  awk -v wanted="# $2" '
    /^# / { in_section = $0 == wanted }
    /^```/ { if (in_section) { open = !open; if (open) print "@ " NR + 1 } next }
    open { print }' "$1"
}

# One translation unit: what dat(7) says that examples take for granted, then a function for each block. A block that
# defines functions stands at file scope instead, in a file of its own.
cat >"$work/common.h" <<'END'
#include <anydat/anydat.h>
#include <arpa/inet.h>
#include <poll.h>
#include <dat/dat_registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern DAT_IA_HANDLE ia;
extern DAT_PZ_HANDLE pz;
extern DAT_EP_HANDLE ep;
extern DAT_SRQ_HANDLE srq;
extern DAT_EVD_HANDLE evd, recv_evd, request_evd, connect_evd, cr_evd, async_evd;
extern DAT_CNO_HANDLE cno;
extern DAT_PSP_HANDLE psp;
extern DAT_RSP_HANDLE rsp;
extern DAT_CR_HANDLE cr;
extern DAT_LMR_HANDLE lmr;
extern DAT_RMR_HANDLE rmr;
extern DAT_LMR_CONTEXT lmr_context;
extern DAT_RMR_CONTEXT rmr_context;
extern DAT_RMR_TRIPLET remote;
extern DAT_LMR_TRIPLET segment;
extern DAT_DTO_COOKIE cookie;
extern DAT_EVENT event;
extern DAT_COUNT more;
extern DAT_RETURN rc;
extern char buffer[4096];
END
sed -e 's,<anydat/anydat.h>,<dat2/udat.h>,; s,<dat/dat_registry.h>,<dat2/dat_registry.h>,' -e '$a extern DAT_CSP_HANDLE csp;' \
  "$work/common.h" >"$work/common2.h"
printf '#include <dat2/dat_ib_extensions.h>\n' >>"$work/common2.h"
printf '#include "common.h"\n' >"$work/examples.c"
printf '#include "common2.h"\n' >"$work/examples2.c"
block=0
for file in man/*.3.scd man/*.7.scd; do
  blocks_of "$file" EXAMPLES >"$work/blocks"
  grep -q '^@' "$work/blocks" || [[ $file == *.7.scd ]] || fault "$file: EXAMPLES has no example"
  version= # of the headers: 2 where a page has those of uDAPL 2.0 alone
  if grep -q '^#include <dat2/' "$file" && ! grep -q '^#include <\(dat\|anydat\)/' "$file"; then version=2; fi
  csplit -sz -f "$work/block." "$work/blocks" '/^@ /' '{*}'
  for part in "$work"/block.*; do
    [ -s "$part" ] || continue
    block=$((block + 1))
    line=$(sed -n '1s/^@ //p' "$part")
    if grep -qE '^[a-z][A-Za-z_ *]*\(.*\) \{$' <(grep -vE '^(if|for|while|switch|do)\b' "$part"); then
      { printf '#include "common%s.h"\n#line %s "%s"\n' "$version" "$line" "$file" && tail -n +2 "$part"; } >"$work/whole.$block.c"
    else
      { printf 'void example_%s(void);\nvoid example_%s(void) {\n#line %s "%s"\n' $block $block "$line" "$file" &&
        tail -n +2 "$part" && printf '}\n'; } >>"$work/examples$version.c"
    fi
    rm -f "$part"
  done
done
awk -v to="$work/whole.first-program" '/^```c$/ {open = 1; ++block; next} /^```/ {open = 0} open {print >(to "." block ".c")}' \
  docs/first-program.md

flags=(-std=gnu11 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-but-set-variable -Iinclude "-I$work")
for source in "$work/examples.c" "$work/examples2.c" "$work"/whole.*.c; do
  if ! "${CC:-cc}" "${flags[@]}" "$source" 2>"$work/complaint"; then
    while IFS= read -r line; do fault "$line"; done < <(grep -E ': (fatal )?error:' "$work/complaint")
  fi
done

# ---- The options of the tools

if [ -n "$tools" ]; then
  for file in man/*.1.scd; do
    tool=$(basename "$file" .1.scd)
    [ -x "$tools/$tool" ] || { fault "$tools/$tool is not there" && continue; }
    for help in '' $("$tools/$tool" --help | awk '/^Subcommands:/ {on = 1; next} on && /^  [a-z]/ {print $1}'); do
      # shellcheck disable=SC2086  # no word at all for the tool itself
      "$tools/$tool" $help --help | awk '/^Options:/ {on = 1} /^Examples?:/ {on = 0} on && /^ +-/' |
        grep -oE -- '^ +(-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'
    done | sort -u >"$work/has"
    grep -oE -- '^\*(-[a-z]\*, \*)?--[a-z-]+' "$file" | grep -oE -- '--[a-z-]+' | sort -u >"$work/tells"
    while read -r option; do fault "$file: $tool has an option $option, which is not on its page"; done < \
      <(comm -23 "$work/has" "$work/tells")
    while read -r option; do fault "$file: $tool has no option $option"; done < <(comm -13 "$work/has" "$work/tells")
  done
fi

[ $faults -eq 0 ] || die "$faults fault(s) in the manual pages"
say "$(find man -name '*.scd' | wc -l) manual pages are in order"
