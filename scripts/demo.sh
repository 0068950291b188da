#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds anydat and shows its main job: many clients, one small shared receive queue, every byte accounted for.
# From a fresh checkout to the result in one command; exit code 0 only if everything arrived.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage() {
  cat <<END
Usage: scripts/demo.sh [FILE...]
Installs what the build needs (Debian's packages), builds into build/demo, and lets 8 client processes send FILEs
(by default the files of this project) to one server through a shared receive queue of 32 buffers.
Example: scripts/demo.sh /usr/include/*.h
END
}

case ${1:-} in
  -h | --help) usage && exit 0 ;;
  -*) usage >&2 && exit 2 ;;
esac

files=()
for file in "$@"; do
  if [ ! -r "$file" ] || [ ! -f "$file" ]; then die "$file is not a file that can be read"; fi
  files+=("$(realpath "$file")")
done
cd "$(dirname "$0")/.."

need_packages "${build_packages[@]}"

mkdir -p build/demo
say "Configuring and building in build/demo (the first time takes a minute or two) ..."
quietly build/demo/configure.log cmake --preset release -B build/demo -DANYDAT_TESTS=OFF -DANYDAT_BENCH=OFF
quietly build/demo/build.log cmake --build build/demo --target example_srq-server

if [ ${#files[@]} -eq 0 ]; then
  while IFS= read -r -d '' file; do files+=("$file"); done < <(
    find . \( -path ./build -o -name .git \) -prune -o -type f -size -4M -print0 | sort -z)
fi

say
build/demo/bin/examples/srq-server --clients 8 --buffers 32 --low 8 -- "${files[@]}"
