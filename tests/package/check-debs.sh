#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the Debian packages of a build and looks into them: names, dependencies, what is where, and that the unpacked
# files work together.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"

[ $# -eq 1 ] || die "usage: check-debs.sh BUILD_FOLDER"
build=$(realpath "$1")
for program in dpkg-deb dpkg-shlibdeps; do
  command -v "$program" >/dev/null || { say "$program is not installed; nothing was checked" && exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$build"
quietly "$work/cpack.log" cpack -G DEB -B "$work/debs"

deb_of() { find "$work/debs" -maxdepth 1 -name "$1_*.deb"; }
field() { dpkg-deb -f "$(deb_of "$1")" "$2"; }
# expect_field PACKAGE FIELD PATTERN
expect_field() {
  local value
  value=$(field "$1" "$2")
  grep -qE "$3" <<<"$value" || die "$1: $2 is '$value'; that does not match $3"
}
# expect_files PACKAGE PATTERN...: each pattern is of a path that must be there.
expect_files() {
  local package=$1 pattern
  shift
  dpkg-deb -c "$(deb_of "$package")" | awk '{print $6}' >"$work/files"
  for pattern in "$@"; do
    grep -qE "^\./usr/$pattern\$" "$work/files" || die "$package: there is no $pattern in it"
  done
  grep -q "^\./usr/share/doc/$package/copyright$" "$work/files" || die "$package: no copyright file"
  if grep -qvE '^\./usr/' "$work/files"; then die "$package: files outside /usr"; fi
}

version=$(field libdat1-anydat Version)
expect_files libdat1-anydat 'lib/[^/]*/libdat\.so\.1' 'lib/[^/]*/libdat\.so\.1\.2\.0'
expect_field libdat1-anydat Depends 'libc6 \(>= .*libstdc\+\+6'
expect_field libdat1-anydat Provides '^libdat1$'
expect_field libdat1-anydat Conflicts '^libdat1$'
dpkg-deb -I "$(deb_of libdat1-anydat)" shlibs | grep -q '^libdat 1 libdat1-anydat (>= ' ||
  die "libdat1-anydat does not tell programs of others what to depend on"

expect_files libdat-anydat-dev include/dat/udat.h include/anydat/anydat.h 'lib/[^/]*/libdat\.so' \
  'lib/[^/]*/pkgconfig/dat\.pc' 'lib/[^/]*/cmake/dat/dat-config\.cmake' share/doc/anydat/examples/hello.c
expect_field libdat-anydat-dev Depends "^libdat1-anydat \(= $version\)$"

expect_files libdat2-anydat 'lib/[^/]*/libdat2\.so\.2' 'lib/[^/]*/libdat2\.so\.2\.0\.0'
for relation in Provides Conflicts Replaces; do
  expect_field libdat2-anydat $relation '^libdapl2$'
  expect_field libdat2-anydat-dev $relation '^libdapl-dev$'
done
dpkg-deb -I "$(deb_of libdat2-anydat)" shlibs | grep -q '^libdat2 2 libdat2-anydat (>= ' ||
  die "libdat2-anydat does not tell programs of others what to depend on"
expect_files libdat2-anydat-dev include/dat2/udat.h include/dat2/dat_ib_extensions.h 'lib/[^/]*/libdat2\.so' \
  'lib/[^/]*/pkgconfig/dat2\.pc' 'lib/[^/]*/cmake/dat2/dat2-config\.cmake'
expect_field libdat2-anydat-dev Depends "^libdat2-anydat \(= $version\)$"

expect_files anydat-utils bin/datinfo bin/datping bin/datperf
expect_field anydat-utils Depends "libdat1-anydat \(= $version\)"
if [ -f man/dat.7 ]; then
  expect_files libdat-anydat-dev 'share/man/man3/dat_srq_create\.3\.gz' 'share/man/man7/dat\.7\.gz'
  # One package has the pages of both versions.
  expect_files libdat-anydat-dev 'share/man/man3/dat_cno_fd_create\.3\.gz' 'share/man/man7/dat2\.7\.gz'
  expect_files anydat-utils 'share/man/man1/datinfo\.1\.gz' 'share/man/man5/dat\.conf\.5anydat\.gz'
fi

# The module, and only the module, needs rdma-core.
if [ -f src/anydat/libanydat-verbs.so ]; then
  expect_files anydat-verbs 'lib/[^/]*/anydat/libanydat-verbs\.so'
  expect_field anydat-verbs Depends "libdat1-anydat \(= $version\)"
  expect_field anydat-verbs Depends 'libibverbs1 \(>= .*librdmacm1'
fi
for package in libdat1-anydat libdat2-anydat anydat-utils; do
  if field "$package" Depends | grep -qE 'ibverbs|rdmacm'; then die "$package depends on rdma-core"; fi
done

# No file is in two packages, and only those that replace Debian's own packages of DAT 2.0 have a name that one of those uses.
for deb in "$work"/debs/*.deb; do
  dpkg-deb -c "$deb" | awk '$1 !~ /^d/ {print $6}'
done | sort >"$work/all"
for deb in "$work"/debs/*.deb; do
  [[ $deb == */libdat2-anydat* ]] || dpkg-deb -c "$deb" | awk '$1 !~ /^d/ {print $6}'
done | sort >"$work/beside"
twice=$(uniq -d "$work/all")
[ -z "$twice" ] || die "in two packages: $twice"
clash=$(grep -E '/libdat2|/include/dat2/|/libdapl|/man5/dat\.conf\.5\.gz$|/etc/' "$work/beside" || true)
[ -z "$clash" ] || die "names that belong to Debian's packages: $clash"

# Unpacked together they work; nothing in them points back into the build.
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
libdir=$(dirname "$(find "$work/root" -name libdat.so.1)")
for program in "$work"/root/usr/bin/*; do
  if readelf -d "$program" | grep -qE 'RPATH|RUNPATH'; then die "$(basename "$program") has a library path of its own"; fi
done
if grep -rqF "$build" "$work/root/usr/lib" "$work/root/usr/include"; then die "a package names the folder of the build"; fi
LD_LIBRARY_PATH=$libdir "$work/root/usr/bin/datping" --count 10 >"$work/datping" ||
  die "the packaged datping fails: $(cat "$work/datping")"
say "$(find "$work/debs" -maxdepth 1 -name '*.deb' | wc -l) packages of version $version are in order"
