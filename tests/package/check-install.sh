#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs a build into a folder of its own and uses it as a stranger would: programs in C and C++ that find it by
# pkg-config and by find_package, the tools, the examples. Also looks at what the library shows of itself.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"

[ $# -eq 1 ] || die "usage: check-install.sh BUILD_FOLDER"
build=$(realpath "$1")
for program in pkg-config nm readelf; do
  command -v "$program" >/dev/null || { say "$program is not installed; nothing was checked" && exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
quietly "$work/install.log" cmake --install "$build" --prefix "$prefix"
libdir=$(dirname "$(find "$prefix" -name libdat.so.1)")

# ---- What the library is called and what it exports

# check_library NAME SONAME NODE OURS: `NODE` is the version that existing binaries ask for (HDR-4, D2-HDR-6), OURS that of our
# own calls, another one in each library (D2-HDR-10).
check_library() {
  local name=$1 soname=$2 node=$3 ours=$4 wrong
  readelf -d "$libdir/$name.so" | grep -q "soname: \[$soname\]" || die "$name.so has another soname than $soname"
  nm -D --defined-only "$libdir/$name.so" | awk '$2 != "A" {print $3}' | sort >"$work/exported"
  sed -nE 's/^    ((any)?dats?_[a-z_]+);/\1/p' "$here/../../src/$name.map" | sort >"$work/mapped"
  sed 's/@.*//' "$work/exported" | diff - "$work/mapped" >"$work/difference" ||
    die "$name.so does not export what its map says: $(cat "$work/difference")"
  wrong=$(grep -vE "^dats?_[a-z_]+@@$node\$|^anydat_[a-z_]+@@$ours\$" "$work/exported" || true)
  [ -z "$wrong" ] || die "$name.so exports under another version than it should: $wrong"
  grep -q "^dat_srq_create@@$node\$" "$work/exported" || die "dat_srq_create of $name.so is not of $node"
}
check_library libdat libdat.so.1 DAT_1.2 ANYDAT_1
check_library libdat2 libdat2.so.2 DAT_2.0 ANYDAT2_1
grep -q '^dat_extension_op@@DAT_2.0$' "$work/exported" || die "libdat2.so does not export dat_extension_op"

# ---- Programs that use it

export LD_LIBRARY_PATH=$libdir PKG_CONFIG_PATH=$libdir/pkgconfig
pkg-config --atleast-version=1.2 dat || die "pkg-config does not find dat 1.2"
read -ra flags < <(pkg-config --cflags --libs dat)
strict=(-Wall -Wextra -Wpedantic -Werror)
"${CC:-cc}" -std=c11 "${strict[@]}" "$here/consumer/consumer.c" -o "$work/by_pc_c" "${flags[@]}"
"${CXX:-c++}" -std=c++17 "${strict[@]}" "$here/consumer/consumer.cc" -o "$work/by_pc_cc" "${flags[@]}"
"$work/by_pc_c"
"$work/by_pc_cc"

pkg-config --atleast-version=2.0 dat2 || die "pkg-config does not find dat2 2.0"
read -ra flags2 < <(pkg-config --cflags --libs dat2)
"${CC:-cc}" -std=c11 "${strict[@]}" "$here/consumer/consumer2.c" -o "$work/by_pc_2" "${flags2[@]}"
"$work/by_pc_2"

quietly "$work/configure.log" cmake -S "$here/consumer" -B "$work/consumer" "-DCMAKE_PREFIX_PATH=$prefix"
quietly "$work/build.log" cmake --build "$work/consumer"
"$work/consumer/consumer_c"
"$work/consumer/consumer_cc"
"$work/consumer/consumer2_c"

# Each example in C is built by the one line that its README gives.
examples=$prefix/share/doc/anydat/examples
for source in "$examples"/*.c; do
  "${CC:-cc}" "$source" -o "$work/example" "${flags[@]}" || die "$(basename "$source") does not build when installed"
done

# ---- The tools find the library beside them

unset LD_LIBRARY_PATH
"$prefix/bin/datinfo" >"$work/datinfo"
grep -q '^soft ' "$work/datinfo" || die "the installed datinfo does not list the adapter soft"
"$prefix/bin/datping" --count 10 >"$work/datping" || die "the installed datping fails: $(cat "$work/datping")"
say "installed below a folder of its own, the library, the tools and the examples work"
