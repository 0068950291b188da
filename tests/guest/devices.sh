# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side: is RDMA there and does it work?  Needs nothing but the base image.
show() { sed -n "$1" /tmp/out | sed 's/^/     /'; }

rdma link
ibv_devices
check "rxe0 active" sh -c 'ibv_devinfo -d rxe0 | grep PORT_ACTIVE'
check "rxe1 active" sh -c 'ibv_devinfo -d rxe1 | grep PORT_ACTIVE'

n=1000
for t in rc srq uc ud; do
  check "ibv_${t}_pingpong, rxe1 to rxe0, $n times" \
    both ibv_${t}_pingpong -d rxe0 -g 1 -n $n -- \
    ibv_${t}_pingpong -d rxe1 -g 1 -n $n 127.0.0.1
  show '/iters in/p'
done
check "ibv_rc_pingpong with events" \
  both ibv_rc_pingpong -e -d rxe0 -g 1 -n 200 -- \
  ibv_rc_pingpong -e -d rxe1 -g 1 -n 200 127.0.0.1
show '/iters in/p'
check "rping over rxe, two devices" both rping -s -a 10.88.0.2 -C 50 -- \
  rping -c -a 10.88.0.2 -I 10.88.0.1 -C 50 -v
check "rping over rxe, one device" both rping -s -a 10.88.0.1 -C 50 -- \
  rping -c -a 10.88.0.1 -C 50 -v
check "ucmatose over rxe" both ucmatose -b 10.88.0.2 -- \
  ucmatose -s 10.88.0.2 -b 10.88.0.1
check "udaddy over rxe" both udaddy -b 10.88.0.2 -- \
  udaddy -s 10.88.0.2 -b 10.88.0.1

p="-x 1 -n 1000 -F"
for t in ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat \
  "ib_send_bw -Q 1" "ib_send_bw -Q 1 --use-srq" "ib_write_bw -Q 1" "ib_read_bw -Q 1"; do
  # shellcheck disable=SC2086
  check "$t over rxe" both $t -d rxe0 $p -- $t -d rxe1 $p 127.0.0.1
  show '/#bytes/{p;n;p}'
done

if [ -e /sys/class/infiniband/siw1 ]; then
  check "rping over siw, two devices" both rping -s -a 10.89.0.2 -C 50 -- \
    rping -c -a 10.89.0.2 -I 10.89.0.1 -C 50 -v
  check "rping over siw, wildcard listener" both rping -s -C 50 -- \
    rping -c -a 10.89.0.2 -I 10.89.0.1 -C 50 -v
  for t in ib_send_lat "ib_send_bw -Q 1" "ib_write_bw -Q 1" "ib_read_bw -Q 1"; do
    # shellcheck disable=SC2086
    check "$t over siw" both $t -R -d siw1 -n 1000 -F -- \
      $t -R -d siw2 -n 1000 -F 10.89.0.1
    show '/#bytes/{p;n;p}'
  done
fi
summary
