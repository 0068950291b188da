#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds OpenFabrics' dtest and dapltest of uDAPL 1.2, unchanged, against this library: what ANYDAT_FIELD_PROGRAMS names.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"

[ $# -eq 3 ] || {
  cat >&2 <<END
Usage: ${0##*/} SOURCES LIBRARY_FOLDER OUT
  SOURCES         the folder of the sources of uDAPL 1.2's reference, which has test/dtest and test/dapltest
  LIBRARY_FOLDER  where libdat.so is, such as build/release/src
  OUT             dtest and dapltest will be there
END
  exit 2
}
sources=$(realpath "$1") library=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
flags=(-O1 -g -w -std=gnu89 -fcommon -D_GNU_SOURCE "-I$here/../../include")

# sources_of MAKEFILE PROGRAM: what automake's file names.
sources_of() {
  awk -v name="$2_SOURCES" '
    $1 == name { on = 1; sub(/^[^=]*=/, "") }
    on { more = /\\[[:space:]]*$/; gsub(/\\/, ""); printf "%s ", $0; if (!more) exit }' "$1"
}
# build FOLDER NAME PROGRAM FLAG...
build() {
  local folder=$1 name=$2 program=$3 files
  shift 3
  cd "$folder"
  read -r -d '' -a files < <(sources_of Makefile.am "$name") || true
  [ ${#files[@]} -gt 0 ] || die "no sources of $name in $folder/Makefile.am"
  "${CC:-cc}" "${flags[@]}" "$@" -o "$out/$program" "${files[@]}" -L"$library" -ldat -lpthread
  say "$out/$program: ${#files[@]} sources"
}
build "$sources/test/dtest" dtest1 dtest
build "$sources/test/dapltest" dapltest1 dapltest -Iinclude -Imdep/linux
