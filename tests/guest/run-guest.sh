#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Boot the guest made by build-guest.sh, run one command in it, stream its
# output and exit with its status.  See README.md.
set -euo pipefail
prog=${0##*/}

usage() {
  cat <<USAGE
usage: $prog --build DIR [options] -- COMMAND [ARG...]
       $prog --build DIR [options] --script FILE [-- ARG...]
  --build DIR       the folder given to build-guest.sh
  --image FILE      the initramfs, if it is not DIR/initramfs
  --timeout SEC     end the guest after this long (default 300): status 124
  --cpus N          virtual processors (default 2), each a host thread
  --cpu MODEL       QEMU's processor model (default max,la57=off: all it has)
  --mem MB          memory (default 2048; only what is used is taken)
  --mtu BYTES       of the veth pair under rxe0 and rxe1 (default 1500, which
                    makes an RDMA path MTU of 1024; 4200 makes 4096)
  --hostfwd H:G     127.0.0.1:H on the host leads to TCP port G of the guest
                    (10.0.2.15, siw0); repeatable
  --reach-host      let the guest reach the host's loopback as 10.0.2.2
  --share DIR       mount this folder read-write at /host in the guest
  --script FILE     run this bash script of the host's; repeatable, they are
                    run as one
  --env NAME=VALUE  set in the command's environment; repeatable
  --console FILE    keep the kernel's console there
  --verbose         show the kernel's console on stderr at the end
One COMMAND word is a shell command line (bash); several are a command and its
arguments.  Its stdout and stderr both come out on stdout.
Status: the command's; 124 time-out; 125 the guest failed (console on stderr).
USAGE
}

build='' image='' timeout=300 cpus=2 mem=2048 mtu=1500 share='' console='' verbose=0 restrict=on
cpu=max,la57=off
fwd=() env=() script=()
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=${2:?}; shift 2 ;;
  --image) image=$(realpath -m "${2:?}"); shift 2 ;;
  --timeout) timeout=${2:?}; shift 2 ;;
  --cpus) cpus=${2:?}; shift 2 ;;
  --cpu) cpu=${2:?}; shift 2 ;;
  --mem) mem=${2:?}; shift 2 ;;
  --mtu) mtu=${2:?}; shift 2 ;;
  --hostfwd) fwd+=("${2:?}"); shift 2 ;;
  --reach-host) restrict=off; shift ;;
  --share) share=$(cd "${2:?}" && pwd); shift 2 ;;
  --script) script+=("${2:?}"); shift 2 ;;
  --env) env+=("${2:?}"); shift 2 ;;
  --console) console=${2:?}; shift 2 ;;
  --verbose) verbose=1; shift ;;
  -h|--help) usage; exit 0 ;;
  --) shift; break ;;
  -*) usage >&2; exit 2 ;;
  *) break ;;
  esac
done
[ -n "$build" ] && [ -n "${script[0]-}${1-}" ] || { usage >&2; exit 2; }
image=${image:-$build/initramfs}
[ -s "$image" ] || { echo "$prog: there is no $image: run build-guest.sh" >&2; exit 2; }

tmp=$(mktemp -d); qemu='' copier=''
cleanup() {
  [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
  [ -z "$copier" ] || kill "$copier" 2>/dev/null || true
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
[ -n "$console" ] || console=$tmp/console

if [ ${#script[@]} -gt 0 ]; then
  [ $# = 0 ] || { printf 'set --'; printf ' %q' "$@"; echo; } > "$tmp/command"
  cat -- "${script[@]}" >> "$tmp/command"
elif [ $# = 1 ]; then
  printf '%s\n' "$1" > "$tmp/command"
else
  { printf '%q ' "$@"; echo; } > "$tmp/command"
fi
for e in ${env[@]+"${env[@]}"}; do
  printf '%s=%q\n' "${e%%=*}" "${e#*=}"
done > "$tmp/env"
echo "$mtu" > "$tmp/mtu"

netdev=user,id=n0,restrict=$restrict,ipv6=off
for f in ${fwd[@]+"${fwd[@]}"}; do
  netdev+=,hostfwd=tcp:127.0.0.1:${f%%:*}-10.0.2.15:${f##*:}
done

# shellcheck disable=SC2054
args=(
  -nodefaults -no-user-config -no-reboot -display none
  -machine pc -accel tcg,thread=multi -cpu "$cpu"
  -smp "$cpus" -m "$mem"
  -kernel "$build/vmlinux" -initrd "$image"
  -append "console=ttyS0 quiet loglevel=4 oops=panic panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check net.ifnames=0 random.trust_cpu=on rcupdate.rcu_expedited=1"
  -chardev "file,id=con,path=$console" -serial chardev:con
  -netdev "$netdev" -device virtio-net-pci,netdev=n0,romfile=
  -device virtio-rng-pci
  -device virtio-serial-pci
  -chardev "file,id=out,path=$tmp/out" -device virtserialport,chardev=out,name=rdma.out
  -chardev "file,id=st,path=$tmp/status" -device virtserialport,chardev=st,name=rdma.status
  -fw_cfg "name=opt/rdma-guest/command,file=$tmp/command"
  -fw_cfg "name=opt/rdma-guest/mtu,file=$tmp/mtu"
)
[ ! -s "$tmp/env" ] || args+=(-fw_cfg "name=opt/rdma-guest/env,file=$tmp/env")
[ -z "$share" ] || args+=(
  -fw_cfg "name=opt/rdma-guest/share,string=1"
  -virtfs "local,path=$share,mount_tag=share,security_model=none"
)

# A pipe, so that the output is streamed whatever our stdout is.
mkfifo "$tmp/out"
cat "$tmp/out" & copier=$!
rc=0
timeout -k 5 "$timeout" qemu-system-x86_64 "${args[@]}" < /dev/null &
qemu=$!
wait "$qemu" || rc=$?
qemu=''
[ -s "$console" ] && wait "$copier" || kill "$copier" 2>/dev/null || true
copier=''
[ "$verbose" = 0 ] || cat "$console" >&2
if [ "$rc" = 124 ] || [ "$rc" = 137 ]; then
  echo "$prog: no end after $timeout s; last of the guest's console:" >&2
  tail -n 15 "$console" >&2
  exit 124
fi
status=$(cat "$tmp/status" 2>/dev/null || true)
if ! [[ $status =~ ^[0-9]+$ ]]; then
  echo "$prog: the guest ended without a status (QEMU's: $rc); its console:" >&2
  tail -n 40 "$console" >&2
  exit 125
fi
exit "$status"
