#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Init of the RDMA guest: brings up the devices, runs the caller's command with
# its output on one virtio port, puts its exit status on another, powers off.
export PATH=/extra/bin:/extra:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LANG=C.UTF-8
[ ! -d /extra/lib ] || export LD_LIBRARY_PATH=/extra/lib

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
ln -sf /proc/self/fd /dev/fd
ulimit -l unlimited
ulimit -c 0

note() { read -r up _ < /proc/uptime; echo "rdma-guest: [$up] $*"; }

note "init"
modprobe -a virtio_pci virtio_console qemu_fw_cfg

# Settings from the host, one file each.
conf() { cat "/sys/firmware/qemu_fw_cfg/by_name/opt/rdma-guest/$1/raw" 2>/dev/null; }

port() {
  for p in /sys/class/virtio-ports/*; do
    [ "$(cat "$p/name")" = "$1" ] && echo "/dev/${p##*/}" && return
  done
  echo /dev/null
}
i=0
while [ "$(port rdma.out)" = /dev/null ] && [ $i -lt 50 ]; do sleep 0.02; i=$((i + 1)); done
out=$(port rdma.out) status=$(port rdma.status)

finish() {
  echo "$1" > "$status"
  note "exit status $1"
  sync
  echo 1 > /proc/sys/kernel/sysrq
  poweroff -f
}

# ------------------------------------------------------------------- network
mtu=$(conf mtu); mtu=${mtu:-1500}
hostname rdma-guest
echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
ip link set lo up
modprobe -a virtio_net veth af_packet 2>/dev/null
i=0
while [ ! -d /sys/class/net/eth0 ] && [ $i -lt 50 ]; do sleep 0.02; i=$((i + 1)); done
if [ -d /sys/class/net/eth0 ]; then
  # QEMU's user network.  No default route: the host's loopback (10.0.2.2)
  # is all there can be to reach.
  ip addr add 10.0.2.15/24 dev eth0
  ip link set eth0 up
fi
# Two veth pairs: rx0-rx1 (10.88.0.1, .2) for rxe, wx0-wx1 (10.89.0.1, .2) for
# siw.  Traffic between the two addresses of a pair really crosses it, as
# between two hosts, instead of being short-cut through lo.
for pair in rx:88 wx:89; do
  d=${pair%:*} net=${pair#*:}
  ip link add ${d}0 address 02:00:0a:$net:00:01 type veth \
    peer name ${d}1 address 02:00:0a:$net:00:02
  for n in 0 1; do
    ip link set $d$n mtu "$mtu" up
    ip addr add 10.$net.0.$((n + 1))/24 dev $d$n
    echo 1 > /proc/sys/net/ipv4/conf/$d$n/accept_local
    echo 0 > /proc/sys/net/ipv4/conf/$d$n/rp_filter
    ip rule add pref 10 iif $d$n lookup local
    ip rule add pref 20 from 10.$net.0.$((n + 1)) to 10.$net.0.$((2 - n)) lookup ${net}$n
    ip neigh add 10.$net.0.$((2 - n)) lladdr 02:00:0a:$net:00:0$((2 - n)) dev $d$n
    ip route add 10.$net.0.$((2 - n)) dev $d$n src 10.$net.0.$((n + 1)) table ${net}$n
  done
done
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
ip rule add pref 30 lookup local
ip rule del pref 0

# ---------------------------------------------------------------------- rdma
modprobe -a ib_uverbs ib_umad rdma_ucm rdma_rxe
modprobe -a crc32-pclmul crc32c-intel crc32c_generic 2>/dev/null
for n in 0 1; do
  rdma link add rxe$n type rxe netdev rx$n || note "no rxe$n"
done
if modprobe siw 2>/dev/null; then
  [ ! -d /sys/class/net/eth0 ] || rdma link add siw0 type siw netdev eth0 || note "no siw0"
  rdma link add siw1 type siw netdev wx0 || note "no siw1"
  rdma link add siw2 type siw netdev wx1 || note "no siw2"
fi
note "rdma devices: $(ls /sys/class/infiniband 2>/dev/null | tr '\n' ' ')"

if [ -n "$(conf share)" ]; then
  modprobe -a 9pnet_virtio 9p
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /host ||
    note "could not mount the shared folder"
fi
conf env > /run/env
[ ! -s /run/env ] || { set -a; . /run/env; set +a; }

# ------------------------------------------------------------------- command
cd /extra || cd /
conf command > /run/command
[ -s /run/command ] || { note "no command"; finish 125; }
note "running the command"
mkfifo /run/out
cat /run/out > "$out" & cat_pid=$!
bash /run/command > /run/out 2>&1 < /dev/null
rc=$?
# Whatever the command left behind would keep the pipe open.
for p in /proc/[0-9]*; do
  p=${p#/proc/}
  [ "$p" = 1 ] || [ "$p" = $cat_pid ] || kill -9 "$p" 2>/dev/null
done
wait $cat_pid
finish $rc
