#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Assemble a small QEMU guest (Debian kernel + initramfs) in which RDMA verbs
# software runs on soft-RoCE (rxe) and soft-iWARP (siw).  See README.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prog=${0##*/}

usage() {
  cat <<USAGE
usage: $prog --build DIR [options]
  --build DIR    cache and result folder (created; about 1 GB at its largest)
  --extra DIR    copy this folder to /extra in the guest, with the shared
                 libraries its programs need (repeatable; later ones win)
  --deb PKG      also unpack this Debian package (repeatable); its shared
                 libraries come along, its other dependencies do not
  --kernel VER   kernel release, e.g. 6.1.0-56-amd64 (default: the one that
                 linux-image-amd64 depends on)
  --image FILE   write the initramfs there instead of DIR/initramfs, so that
                 several can be made of one folder
  --no-siw       do not build the siw module
  --refresh      forget the cached kernel, packages and modules; start afresh
Writes DIR/vmlinux and DIR/initramfs, which run-guest.sh boots.
USAGE
}

die() { echo "$prog: $*" >&2; exit 1; }
say() { printf '%s: [%3ds] %s\n' "$prog" "$SECONDS" "$*" >&2; }

build='' image='' kver='' want_siw=1 refresh=0
extras=() debs=()
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=${2:?}; shift 2 ;;
  --extra) extras+=("$(cd "${2:?}" && pwd)"); shift 2 ;;
  --deb) debs+=("${2:?}"); shift 2 ;;
  --image) image=$(realpath -m "${2:?}"); shift 2 ;;
  --kernel) kver=${2:?}; shift 2 ;;
  --no-siw) want_siw=0; shift ;;
  --refresh) refresh=1; shift ;;
  -h|--help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
  esac
done
[ -n "$build" ] || { usage >&2; exit 2; }

# The userland of the guest.  Every file of these packages is unpacked (less
# documentation and the providers of hardware that cannot be there); of the
# packages they depend on, only the shared libraries that are really needed.
packages=(
  libc6 libgcc-s1 libstdc++6 busybox-static bash iproute2
  libibverbs1 ibverbs-providers ibverbs-utils
  librdmacm1 rdmacm-utils perftest
  "${debs[@]}"
)

# Modules put into the guest, with all they depend on.
modules=(
  virtio_pci virtio_net virtio_console qemu_fw_cfg 9p 9pnet_virtio
  veth dummy af_packet
  crc32_generic crc32c_generic crc32-pclmul crc32c-intel libcrc32c
  ib_core ib_uverbs ib_umad ib_cm iw_cm rdma_cm rdma_ucm
  udp_tunnel ip6_udp_tunnel rdma_rxe
)

nicely() { nice -n 19 "$@"; }

# ---------------------------------------------------------------- host tools
need_host_tools() {
  local want=() t
  local -A pkg_of=(
    [qemu-system-x86_64]=qemu-system-x86 [cpio]=cpio [xz]=xz-utils
  )
  [ "$want_siw" = 0 ] || pkg_of+=([make]=make [gcc-12]=gcc-12 [ld]=binutils)
  for t in "${!pkg_of[@]}"; do
    command -v "$t" >/dev/null || want+=("${pkg_of[$t]}")
  done
  [ ${#want[@]} = 0 ] && return
  say "installing on the host: ${want[*]}"
  apt-get install -y --no-install-recommends "${want[@]}" >&2
}

# apt's package lists may be missing on a fresh machine.
need_apt_lists() {
  apt-cache show linux-image-amd64 >/dev/null 2>&1 && return
  say "apt-get update"
  apt-get update >&2
}

# unpack DEB DIR: as dpkg -x does, but following the merged-/usr links in DIR.
unpack() {
  dpkg-deb --fsys-tarfile "$1" | tar -x --no-same-owner \
    --keep-directory-symlink -C "$2"
}

merged_usr() {
  mkdir -p "$1"/usr/{bin,sbin,lib,lib64}
  local d
  for d in bin sbin lib lib64; do ln -sfn "usr/$d" "$1/$d"; done
}

# ------------------------------------------------------------ kernel and siw
get_kernel() {
  local k=$build/kernel
  if [ -e "$k/ok-$kver" ]; then return; fi
  rm -rf "$k"; mkdir -p "$k/deb" "$k/root"
  kdeb_version=$(apt-cache show "linux-image-$kver" |
    sed -n 's/^Version: //p' | head -n 1)
  say "kernel $kver ($kdeb_version)"
  (cd "$k/deb" && apt-get -qq -o APT::Sandbox::User=root download "linux-image-$kver=$kdeb_version")
  merged_usr "$k/root"
  unpack "$k/deb"/linux-image-*.deb "$k/root"
  rm -rf "$k/deb"
  echo "$kdeb_version" > "$k/ok-$kver"
}

# The kernel proper, out of its self-extracting file: QEMU starts it directly
# (PVH), which saves the seconds that unpacking takes in an emulated processor.
# Where it lies is in the boot protocol's header (setup_sects, payload_offset,
# payload_length; the last 4 bytes are the unpacked size).
unpack_kernel() {
  local z=$1 out=$2 sects off len
  sects=$(od -An -tu1 -j $((0x1f1)) -N1 "$z")
  off=$(od -An -tu4 -j $((0x248)) -N4 "$z")
  len=$(od -An -tu4 -j $((0x24c)) -N4 "$z")
  off=$(((sects + 1) * 512 + off))
  head -c $((off + len - 4)) "$z" | tail -c $((len - 4)) > "$out.xz"
  if ! xz -dc "$out.xz" > "$out" 2>/dev/null; then
    say "note: kernel not packed with xz, booting it as it is"
    cp "$z" "$out"
  fi
  rm -f "$out.xz"
}

# PACKAGE=VERSION, or PACKAGE alone where that version is there no more: for
# some hours after a new kernel only some of its packages are.
version_or_newest() {
  if apt-cache madison "$1" | grep -qF " $2 "; then echo "$1=$2"; else echo "$1"; fi
}

# Debian leaves siw out of its kernel but ships the source: build just that
# folder against the headers of exactly the same package version.  The
# programs that build modules are the same for all versions of a series.
get_siw() {
  local s=$build/siw v series hdr
  v=$(cat "$build/kernel/ok-$kver")
  if [ -e "$s/ok-$kver-$v" ]; then return; fi
  rm -rf "$s"; mkdir -p "$s/deb" "$s/root" "$s/src"
  series=$(echo "$kver" | cut -d. -f1,2)
  say "siw: fetching headers and source $v"
  local flavour=${kver##*-}
  (cd "$s/deb" && apt-get -qq -o APT::Sandbox::User=root download \
    "linux-headers-$kver=$v" \
    "linux-headers-${kver%-"$flavour"}-common=$v" \
    "$(version_or_newest "linux-kbuild-$series" "$v")" \
    "$(version_or_newest "linux-source-$series" "$v")") || return 1
  local d
  for d in "$s"/deb/*.deb; do dpkg-deb -x "$d" "$s/root"; done
  rm -rf "$s/deb"
  say "siw: unpacking its source"
  nicely tar -xJf "$s/root/usr/src/linux-source-$series.tar.xz" \
    -C "$s/src" --strip-components=5 \
    "linux-source-$series/drivers/infiniband/sw/siw" || return 1
  rm -f "$s/root/usr/src/linux-source-$series.tar.xz"
  # The headers' top Makefile names its own installed place; all other
  # links in the packages are relative.
  hdr=$s/root/usr/src/linux-headers-$kver
  sed -i "s#include /usr/src/#include $s/root/usr/src/#" "$hdr/Makefile"
  say "siw: compiling"
  nicely make -s -j2 -C "$hdr" M="$s/src" CONFIG_RDMA_SIW=m modules \
    > "$s/make.log" 2>&1 || { cat "$s/make.log" >&2; return 1; }
  strip -g -o "$s/siw.ko" "$s/src/siw.ko"
  rm -rf "$s/root" "$s/src"
  touch "$s/ok-$kver-$v"
}

# copy_modules ROOT: the chosen modules and their dependencies, and an index.
copy_modules() {
  local from=$build/kernel/root/lib/modules/$kver
  local to=$1/lib/modules/$kver bb=$build/closure/bin/busybox
  [ -e "$from/modules.dep" ] || nicely "$bb" depmod -b "$build/kernel/root" "$kver"
  mkdir -p "$to"
  local m rel
  for m in "${modules[@]}"; do
    rel=$(sed -n "s#^\\(.*/$m\\.ko\\): *\\(.*\\)#\\1 \\2#p" "$from/modules.dep")
    if [ -z "$rel" ]; then
      grep -q "/$m\\.ko\$" "$from/modules.builtin" ||
        say "note: no module $m in $kver"
      continue
    fi
    # shellcheck disable=SC2086
    (cd "$from" && cp --parents $rel "$to")
  done
  cp "$from/modules.builtin" "$from/modules.order" "$to"
  if [ "$have_siw" = 1 ]; then
    mkdir -p "$to/updates"
    cp "$build/siw/siw.ko" "$to/updates/"
  fi
  "$bb" depmod -b "$1" "$kver"
}

# ------------------------------------------------------------------ userland
# Fetch the packages and all they depend on, as if nothing were installed, so
# that the guest does not depend on what this machine happens to have.
get_packages() {
  local stamp=$build/debs/ok-$pkg_key
  if [ -e "$stamp" ]; then return; fi
  mkdir -p "$build/debs/partial"
  rm -f "$build"/debs/ok-* "$build"/debs/*.deb
  : > "$build/debs/empty-status"
  say "userland: fetching ${packages[*]}"
  apt-get -qq -y --no-install-recommends --download-only \
    -o Dir::State::status="$build/debs/empty-status" \
    -o Dir::Cache::archives="$build/debs/" \
    -o APT::Sandbox::User=root \
    -o Debug::NoLocking=true install "${packages[@]}" >&2
  rm -rf "$build/closure"
  merged_usr "$build/closure"
  local d
  for d in "$build"/debs/*.deb; do unpack "$d" "$build/closure"; done
  touch "$stamp"
}

libdirs() {
  local c=$build/closure
  echo "$c/usr/lib/x86_64-linux-gnu:$c/usr/lib"
}

ld_so() { echo "$build/closure/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"; }

# elf_files ROOT: the dynamically linked programs and libraries under it.
elf_files() {
  find "$1" -type f -size +3 \( -perm /111 -o -name '*.so*' \) \
    ! -name 'ld-linux*' ! -name '*.ko' |
  while IFS= read -r f; do
    if "$(ld_so)" --verify "$f" 2>/dev/null; then echo "$f"; fi
  done
}

# add_libs ROOT LIBRARY_PATH: what the ELF files under ROOT need and ROOT does
# not have, found by the guest's own dynamic loader.
add_libs() {
  local root=$1 path=$2 f lib at
  local ld; ld=$(ld_so)
  local dest=$root/usr/lib/x86_64-linux-gnu
  mkdir -p "$dest"
  elf_files "$root" | while IFS= read -r f; do
    "$ld" --library-path "$path" --list "$f" 2>/dev/null || true
  done | sed -n 's/^\t\([^ /]*\) => \(.*\) (0x[0-9a-f]*)$/\1 \2/p' | sort -u |
  while read -r lib at; do
    case $at in "$root"/*) continue ;; esac
    [ -e "$dest/$lib" ] || cp -L "$at" "$dest/$lib"
  done
  # What stays unresolved is worth a word: it fails at run time.
  elf_files "$root" | while IFS= read -r f; do
    "$ld" --library-path "$dest:$path" --list "$f" 2>/dev/null |
      sed -n "s#^\t\(.*\) => not found#${f#"$root"}: \1 not found#p"
  done | sort -u | sed "s/^/$prog: warning: /" >&2
}

make_base() {
  local root=$build/base p d
  rm -rf "$root"; merged_usr "$root"
  mkdir -p "$root"/{proc,sys,dev,run,tmp,root,etc,extra,host,var/log}
  ln -s ../run "$root/var/run"
  for p in "${packages[@]}"; do
    for d in "$build/debs/$p"_*.deb; do unpack "$d" "$root"; done
  done
  rm -rf "$root"/usr/share/{doc,man,locale,info,lintian,bug,doc-base} \
    "$root"/usr/lib/x86_64-linux-gnu/{gconv,audit} \
    "$root"/usr/share/bash-completion "$root"/usr/include
  # Providers: only those of the two software devices.
  find "$root/usr/lib/x86_64-linux-gnu/libibverbs" -name 'lib*-rdmav*.so' \
    ! -name 'librxe-*' ! -name 'libsiw-*' -delete
  find "$root/etc/libibverbs.d" -name '*.driver' \
    ! -name 'rxe.driver' ! -name 'siw.driver' -delete
  find "$root/usr/lib/x86_64-linux-gnu" \( -name 'libmlx*' -o -name 'libefa*' \
    -o -name 'libmana*' \) -delete
  add_libs "$root" "$(libdirs)"
  local a
  for a in $("$root/bin/busybox" --list); do
    [ -e "$root/bin/$a" ] || [ -e "$root/sbin/$a" ] ||
      ln -s busybox "$root/usr/bin/$a"
  done
  # The kernel calls this path to load what it misses.
  ln -sf ../bin/busybox "$root/usr/sbin/modprobe"
  printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'nobody:x:65534:65534:nobody:/:/bin/sh' > "$root/etc/passwd"
  printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' > "$root/etc/group"
  echo '127.0.0.1 localhost rdma-guest' > "$root/etc/hosts"
  copy_modules "$root"
  install -m 755 "$here/guest-init.sh" "$root/init"
  echo "$kver" > "$root/etc/rdma-guest-kernel"
  pack "$root" "$build/base.cpio"
}

# Uncompressed: QEMU hands it over at once, while inflating it in an emulated
# processor would cost seconds.
pack() {
  (cd "$1" && find . -print0 | LC_ALL=C sort -z |
    cpio --quiet -0 -o -H newc -R 0:0 --reproducible) > "$2.tmp"
  mv "$2.tmp" "$2"
}

make_extra() {
  local root=$build/extra e
  rm -rf "$root"; mkdir -p "$root/extra"
  for e in "${extras[@]}"; do cp -a "$e/." "$root/extra/"; done
  # Libraries: the folder's own first, then the guest's, then the host's.
  local dirs
  dirs=$(find "$root/extra" -name '*.so*' -printf '%h\n' | sort -u | tr '\n' ':')
  add_libs "$root" "$dirs$build/base/usr/lib/x86_64-linux-gnu:$(libdirs):/usr/local/lib:/usr/lib/x86_64-linux-gnu:/usr/lib"
  local f
  for f in "$root"/usr/lib/x86_64-linux-gnu/*; do
    [ ! -e "$build/base/usr/lib/x86_64-linux-gnu/${f##*/}" ] || rm -f "$f"
  done
  pack "$root" "$build/extra.cpio"
}

# ---------------------------------------------------------------------- main
rc=0
trap 'rc=$?; [ $rc = 0 ] || echo "$prog: failed, status $rc" >&2' EXIT
mkdir -p "$build"; build=$(cd "$build" && pwd)
[ "$refresh" = 0 ] || rm -rf "$build"/{kernel,siw,debs,closure,base,base.key}
image=${image:-$build/initramfs}
exec 9> "$build/lock"; flock 9

need_host_tools
if [ -z "$kver" ] && [ -s "$build/kernel.release" ] && [ "$refresh" = 0 ]; then
  kver=$(cat "$build/kernel.release")
fi
if [ -z "$kver" ]; then
  need_apt_lists
  kver=$(apt-cache depends linux-image-amd64 |
    sed -n 's/^ *Depends: linux-image-\([0-9].*-amd64\)$/\1/p' | head -n 1)
  [ -n "$kver" ] || die "apt knows no linux-image-amd64"
fi
echo "$kver" > "$build/kernel.release"

pkg_key=$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-16)
base_key=$(cat "${BASH_SOURCE[0]}" "$here/guest-init.sh" - \
  <<<"$kver $pkg_key $want_siw" | sha256sum | cut -c1-16)
if [ "$(cat "$build/base.key" 2>/dev/null)" = "$base_key" ]; then
  say "kernel $kver, base image cached"
else
  need_apt_lists
  get_kernel
  have_siw=0
  if [ "$want_siw" = 1 ]; then
    if get_siw; then have_siw=1; else say "warning: siw did not build; the guest will have rxe only"; fi
  fi
  get_packages
  say "base image"
  make_base
  unpack_kernel "$build/kernel/root/boot/vmlinuz-$kver" "$build/vmlinux"
  echo "$base_key" > "$build/base.key"
fi

if [ ${#extras[@]} -gt 0 ]; then
  make_extra
  cat "$build/base.cpio" "$build/extra.cpio" > "$image.tmp"
else
  cp "$build/base.cpio" "$image.tmp"
fi
mv "$image.tmp" "$image"
say "ready: kernel $kver, initramfs $(($(stat -c %s "$image") / 1048576)) MiB"
