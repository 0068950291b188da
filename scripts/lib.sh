# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the scripts share. Source it: . "$(dirname "$0")/lib.sh"

# Debian's packages that the library, the tools and the examples are built from.
# shellcheck disable=SC2034  # used by the scripts that source this file
build_packages=(g++ cmake ninja-build libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev libisal-dev)
# What the NIC for RDMA devices needs; without them the rest is built.
# shellcheck disable=SC2034  # used by scripts, as above
verbs_packages=(libibverbs-dev librdmacm-dev pkgconf)
# What the tests need on top.
# shellcheck disable=SC2034  # used by scripts, as above
test_packages=(libgtest-dev libgmock-dev scdoc pkgconf dpkg-dev valgrind binutils)

# What the tests on RDMA devices need, which boot a QEMU guest.
# shellcheck disable=SC2034  # used by scripts, as above
guest_packages=(qemu-system-x86 cpio xz-utils)
# What the tests between network namespaces need; tshark decodes what they send.
# shellcheck disable=SC2034  # used by scripts, as above
hosts_packages=(iproute2 tshark)

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# need_packages NAME...: makes sure that these Debian packages are installed, and installs them if it may.
# Where it may not, it says what is missing and fails. Where there is no dpkg it takes the reader's word for it.
need_packages() {
  local missing=() package as_root=()
  if ! command -v dpkg-query >/dev/null; then
    say "No dpkg here; assuming that these (by Debian's names) are installed: $*" >&2
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      say "${0##*/}: these packages are missing, and there is no right to install them: ${missing[*]}" >&2
      say "${0##*/}: as root: apt-get install --no-install-recommends ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo -n)
  fi
  say "Installing ${missing[*]} ..."
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends)
  # The package lists may be absent (a fresh container) or out of date: fetch them and try once more.
  "${install[@]}" "${missing[@]}" >/dev/null 2>&1 && return 0
  "${as_root[@]}" apt-get -qq update >/dev/null && "${install[@]}" "${missing[@]}" >/dev/null && return 0
  say "${0##*/}: could not install ${missing[*]}" >&2
  return 1
}

# quietly LOG COMMAND...: runs a command with its output in a file, and shows the end of that file if it fails.
quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "'$*' failed; all of its output is in $log"
  fi
}
