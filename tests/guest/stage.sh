# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For scripts on the host: puts what was built into an initramfs of the guest's. Source it after scripts/lib.sh.

# stage GUEST_FOLDER BUILD_FOLDER IMAGE FILE...: the tools, the library with its module, the tests of conformance
# or those that $staged_tests names, and more files; FILE:FOLDER goes into bin or lib there. Where the guest or the module is missing it says so and ends with 77,
# which counts as skipped.
stage() {
  local guest=$1 build=$2 image=$3 folder file
  shift 3
  if [ ! -s "$guest/initramfs" ]; then say "skipped: there is no guest in $guest"; exit 77; fi
  if [ ! -f "$build/src/anydat/libanydat-verbs.so" ]; then say "skipped: the module for RDMA devices was not built"; exit 77; fi
  folder=$(mktemp -d)
  chmod 755 "$folder"
  mkdir -p "$folder/bin" "$folder/lib/anydat"
  for file in datinfo datping datperf "${staged_tests:-tests/conformance_tests}"; do
    [ ! -x "$build/bin/$file" ] || cp "$build/bin/$file" "$folder/bin/"
  done
  cp -L "$build/src/libdat.so.1" "$folder/lib/"
  cp "$build/src/anydat/libanydat-verbs.so" "$folder/lib/anydat/"
  strip -g "$folder"/bin/* "$folder"/lib/*.so* "$folder"/lib/anydat/*
  for file in "$@"; do
    case $file in
      *:bin | *:lib) cp -L "${file%:*}" "$folder/${file##*:}/" ;;
      *) cp "$file" "$folder/" ;;
    esac
  done
  "$(dirname "${BASH_SOURCE[0]}")/build-guest.sh" --build "$guest" --image "$image" --extra "$folder" || {
    rm -rf "$folder"
    die "the image of the guest could not be made"
  }
  rm -rf "$folder"
}
