// SPDX-License-Identifier: BSD-3-Clause
// The end of a connection against RDMA of the peer (src/nic/soft/wire/shm/hazards.cc, rdma_gate) under x86-TSO. The owner of
// the memory ends connection 0 of two that share a link; the peer has a thread that posts to each, with a slot of its own,
// and an engine that hears of the end. Stores of those that post lie in a buffer until they reach memory, in their order;
// membarrier(2) asks them to have had it empty at some moment. scripts/check-models.sh says what each of these has to show:
//   PEER_ENDS   it is the peer that ends connection 0, and the owner hears of that
//   NO_FENCE, NO_WAIT, OPEN_FIRST, NO_SECOND_LOOK, NO_WAKE; CLOSE_FIRST with PEER_ENDS   faults
#define CAP 3
#define SLOT(c) (c)       /* SegmentHeader::rdma_uses */
#define LOCK(c) (2 + (c)) /* SendQueue::lock_ */
#define ROUNDS 2

byte mem[4];
typedef Buffer { byte word[CAP]; byte value[CAP]; byte count; bool asked };
Buffer b[2];
byte gate;       // counts by one; it and the next are changed by atomic instructions only
bool at_gate;    // Hazards::somebody_at_gate_
bool connected0 = true;  // the state of connection 0's queue pair, under its lock
bool told;       // `close` is in the ring
bool wakes;      // schedule_turn(), of connection 1
bool reported;   // dat_ep_free has returned

inline store(w, v) { d_step { b[me].count < CAP; b[me].word[b[me].count] = w; b[me].value[b[me].count] = v; b[me].count++ } }
inline lock(c) { d_step { b[me].count == 0 && mem[LOCK(c)] == 0 -> mem[LOCK(c)] = 1 } }
inline open_gate() {
  d_step { gate--; seen = gate };
#ifndef NO_WAKE
  if :: seen == 0 -> d_step { seen = at_gate; at_gate = false }; if :: seen -> wakes = true :: else fi :: else fi;
#endif
  seen = 0
}

active [2] proctype buffer() {
  byte me = _pid; byte i;
end:
  do
  :: d_step { b[me].count > 0 ->
       mem[b[me].word[0]] = b[me].value[0]; i = 1;
       do :: i < b[me].count -> b[me].word[i-1] = b[me].word[i]; b[me].value[i-1] = b[me].value[i]; i++ :: else -> break od;
       b[me].count--; b[me].word[b[me].count] = 0; b[me].value[b[me].count] = 0; i = 0 }
  :: d_step { b[me].asked && b[me].count == 0 -> b[me].asked = false }
  od
}

// One post after the other. Connection 0 is over when its state says so; connection 1 has to get all of them through.
active [2] proctype poster() {
  byte me = _pid - 2; byte n; bool shut;
  do
  :: n == ROUNDS -> break
  :: else ->
     lock(me);
     if :: me == 0 && !connected0 -> store(LOCK(me), 0); break :: else fi;
     store(SLOT(me), 1);
     shut = (gate != 0);
     if :: !shut ->
           assert(me != 0 || !reported);  // the copy, at its beginning and at its end
           assert(me != 0 || !reported);
           n++
        :: else ->
           at_gate = true;  // an exchange: what is in the buffer comes first
#ifndef NO_SECOND_LOOK
           b[me].count == 0;
           shut = (gate != 0)
#endif
     fi;
     store(SLOT(me), 0);
     store(LOCK(me), 0);
     // Blocked: it is carried out when its stream is called to come back, or flushed with its connection.
     if :: shut -> if :: me == 0 -> break :: me == 1 -> d_step { wakes -> wakes = false } fi :: else fi;
     shut = false
  od
}

#ifdef PEER_ENDS
active proctype engine() {
#ifdef CLOSE_FIRST
  told = true;
#endif
  d_step { mem[LOCK(0)] == 0 -> connected0 = false };  // Connection::stop_sending()
  told = true
}

active proctype owner() { told; reported = true }
#else
active proctype engine() {
  bool seen;
  told;
#ifdef OPEN_FIRST
  open_gate();
#endif
  d_step { mem[LOCK(0)] == 0 -> connected0 = false };  // what sets the state has the lock
#ifndef OPEN_FIRST
  open_gate()
#endif
}

active proctype owner() {
  gate++;
  told = true;
#ifndef NO_FENCE
  d_step { b[0].asked = true; b[1].asked = true };
  d_step { !b[0].asked && !b[1].asked };
#endif
#ifndef NO_WAIT
  if :: gate == 0 -> skip :: mem[SLOT(0)] == 0 -> skip fi;
#endif
  reported = true
}
#endif
