# SPDX-License-Identifier: BSD-3-Clause
# Sourced by what counts instructions of the library with callgrind.

# The functions of what the library does by time, in one pass or the other by chance, as a pattern for awk: a pass that
# reads the clock, Loop::poll_by_time() and what it calls, the look whether a peer has hung up, and that at pages which
# have not been seen for a millisecond.
by_time='Engine::(poll_by_clock|look_by_time)|(OwnPages|PeerMemory|RdmaPages)::(all_)?there|ResidentPages::(Known::|known|are_resident|seen_around)|SeenMemory::look|(AccessMap|PageMap)::|Loop::(poll_by_time|run_descriptors)|Timers::run|LinkSet::(look_by_time|let_cool)|PollClock::(read|looked)|Epoll::ready|os::peer_has_hung_up|^epoll_wait|^__pthread_.*asynccancel|^__internal_syscall_cancel|^__syscall_cancel'
# Those of them that are looked for among the callees, since what they have the system do is listed with the caller.
# shellcheck disable=SC2034  # used by bench/instructions.sh
by_time_calls='Engine::look_by_time|PollClock::read|Loop::poll_by_time|os::peer_has_hung_up|(OwnPages|RdmaPages)::(all_)?there|ResidentPages::are_resident'
