// SPDX-License-Identifier: BSD-3-Clause
// os::Biased (src/os/biased_lock.h) under x86-TSO: every interleaving of T threads that go on for as long as they
// like, or for so many ROUNDS. Each thread has a buffer of its stores, which reach memory in their order, at any time;
// its loads look there first. membarrier(2) asks each other thread to have had its buffer empty at some moment of the
// call, not all at once. scripts/check-models.sh says with which of these it is run, and what each of them has to show:
//   MUTEX            the lock underneath is released by an exchange, else by a store
//   TASKS            what threads do is nic::Engine's: tasks are left for who holds the lock
//   NO_FENCE, NO_SECOND_LOOK, NO_LOOK, NO_TRY_AGAIN, TWO_LOOKS, ONE_MARK   faults
#ifndef T
#define T 2
#endif
#ifndef CAP
#define CAP 4  // stores that a buffer has room for
#endif
#define FREE 0
#define CLAIMED 1
#define HELD 2
#define THREAD 0   /* Bias::granted_; threads count from 1 */
#define LOCK 1     /* the lock underneath */
#define UNDER 2    /* Biased::underneath_ */
#define PENDING 3  /* RunQueue::pending_ */
#define DATA 4     /* what the lock guards */
#define GRANT 5    /* Bias::last_grant_ */
#define WORDS (6 + T)
#ifdef ONE_MARK
#define MARK(thread) 6
#else
#define MARK(thread) (5 + thread) /* Bias::marks_ */
#endif

byte mem[WORDS];
typedef Buffer { byte word[CAP]; byte value[CAP]; byte count; bool asked };
Buffer b[T + 1];
byte inside, data, ended;  // what is true, for the assertions

inline store(w, v) { d_step { b[me].count < CAP; b[me].word[b[me].count] = w; b[me].value[b[me].count] = v; b[me].count++ } }
inline load(w, r) {
  d_step {
    r = mem[w]; i = 0;
    do :: i < b[me].count -> if :: b[me].word[i] == w -> r = b[me].value[i] :: else fi; i++ :: else -> break od;
    i = 0
  }
}
inline fence() { b[me].count == 0 }
inline exchange(w, v) { d_step { b[me].count == 0; mem[w] = v } }
inline fence_all() {
#ifndef NO_FENCE
  d_step { b[me].count == 0; i = 1; do :: i <= T -> b[i].asked = (i != me); i++ :: else -> break od; i = 0 };
  d_step { b[1].asked + b[2].asked + (T > 2 -> b[T].asked : 0) == 0 }
#else
  skip
#endif
}
// The machine: stores reach memory, and interrupts of membarrier(2) come.
active [T] proctype buffer() {
  byte me = _pid + 1; byte i;
end:
  do
  :: d_step { b[me].count > 0 ->
       mem[b[me].word[0]] = b[me].value[0]; i = 1;
       do :: i < b[me].count -> b[me].word[i-1] = b[me].word[i]; b[me].value[i-1] = b[me].value[i]; i++ :: else -> break od;
       b[me].count--; b[me].word[b[me].count] = 0; b[me].value[b[me].count] = 0; i = 0 }
  :: d_step { b[me].asked && b[me].count == 0 -> b[me].asked = false }
  od
}

inline mine(r) { load(THREAD, r); r = (r == me -> 1 : 0) }
inline marked(r) { load(MARK(me), r); r = (r != FREE -> 1 : 0) }
inline held(r) { load(GRANT, g); if :: g == 0 -> r = 0 :: else -> load(MARK(g), r); r = (r != FREE -> 1 : 0) fi }
inline claim(m, r) {
  store(MARK(me), m);
#ifdef NO_SECOND_LOOK
  r = 1;
#else
  mine(r);
  if :: r -> skip :: else -> store(MARK(me), FREE); r = 0 fi
#endif
}
inline revoke() {
  load(THREAD, x);
  if :: x == 0 -> skip
  :: else ->
     store(THREAD, 0); fence_all()
  fi
}
// While the condition holds; only the last look of a row of them changes anything.
inline wait_unless(w, v) { load(w, x); do :: x == v -> x = 0; break :: else -> atomic { mem[w] == v -> load(w, x) } od }
inline wait_while(w, v, r) { load(w, r); do :: r != v -> break :: else -> atomic { mem[w] != v -> load(w, r) } od }

inline lock() {
  mine(r); if :: r -> claim(HELD, r) :: else fi;
  if :: r -> skip
  :: else ->
     d_step { b[me].count == 0 && mem[LOCK] == 0 -> mem[LOCK] = me };
     load(THREAD, r); if :: r == 0 -> held(r) :: else fi;
     if :: r -> revoke(); load(GRANT, g); wait_unless(MARK(g), FREE) :: else fi; g = 0;
     store(UNDER, 1)
  fi;
  r = 1; entered()
}
inline try_lock() {
  mine(r);
  if :: r -> marked(r); r = 1 - r :: else fi;
  if :: r -> claim(CLAIMED, r); if :: r -> store(MARK(me), HELD) :: else fi :: else fi;
  again = !r;
  do
  :: again ->
     again = false; load(LOCK, r);
     if :: r != 0 -> r = 0
     :: else -> d_step { b[me].count == 0 -> if :: mem[LOCK] == 0 -> mem[LOCK] = me; r = 1 :: else -> r = 0 fi }
     fi;
     if :: r == 0 -> skip
     :: else ->
        load(THREAD, x); if :: x == 0 -> held(x) :: else fi;
        if :: x == 0 -> r = 1
        :: else -> load(GRANT, g);
           load(THREAD, x);
           if :: x == me -> r = 0
           :: else -> revoke(); wait_while(MARK(g), CLAIMED, r);
#ifdef TWO_LOOKS
              load(MARK(g), r);
#endif
              r = (r == FREE -> 1 : 0)
           fi
        fi;
        if :: r -> store(UNDER, 1)
        :: else -> unlock_inner();
#ifndef NO_TRY_AGAIN
           fence(); load(MARK(g), x); again = (x == FREE)
#endif
        fi
     fi; g = 0
  :: else -> break
  od;
  x = 0; if :: r -> entered() :: else fi
}
inline unlock_inner() {
  assert(mem[LOCK] == me);
#ifdef MUTEX
  exchange(LOCK, 0)
#else
  store(LOCK, 0)
#endif
}
inline entered() { inside++; assert(inside == 1); load(DATA, x); assert(x == data); x = 0 }
inline leave_and_look() { change_data(); load(UNDER, r);
  if :: r == 0 -> load(GRANT, g); store(MARK(g), FREE); g = 0;
#ifndef NO_LOOK
        mine(r); if :: r -> skip :: else -> fence() fi
#endif
  :: else ->
     store(UNDER, 0);
     if :: store(GRANT, me); store(THREAD, me) :: skip fi;  // any thread may have earned it, at any time
     unlock_inner()
  fi; r = 0 }
inline change_data() { data = 1 - data; store(DATA, data); inside-- }

// nic::Engine: what its holder does with the tasks that others add.
inline unlock_after_work() {
  do :: load(PENDING, r); do :: r -> exchange(PENDING, 0); load(PENDING, r) :: else -> break od;
     leave_and_look(); load(PENDING, r); if :: r -> try_lock() :: else fi; if :: r -> skip :: else -> break fi od }
inline engine_unlock() {
  load(PENDING, r);
  if :: r -> unlock_after_work()
  :: else -> leave_and_look(); load(PENDING, r); if :: r -> try_lock() :: else fi; if :: r -> unlock_after_work() :: else fi
  fi; r = 0 }

active [T] proctype thread() {
  byte me = _pid + 1 - T; byte i, r, x, g; bool again;
#ifdef ROUNDS
  byte n;
#define ONCE n < ROUNDS -> n++
#else
#define ONCE true  // for as long as they like
#endif
  do
#ifdef TASKS
  :: atomic { ONCE } -> exchange(PENDING, 1); try_lock(); if :: r -> engine_unlock() :: else fi; again = false
  :: atomic { ONCE } -> try_lock(); if :: r -> engine_unlock() :: else fi; again = false
  :: atomic { ONCE } -> lock(); engine_unlock(); again = false
#else
  :: atomic { ONCE } -> lock(); leave_and_look()
  :: atomic { ONCE } -> try_lock(); if :: r -> leave_and_look() :: else fi; again = false
#endif
  :: true -> break
  od;
  fence();
  d_step { ended++; if :: ended == T -> assert(mem[LOCK] == 0 && mem[MARK(1)] == FREE && mem[MARK(2)] == FREE && mem[PENDING] == 0) :: else fi }
}
