// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into a program (LD_PRELOAD): all memory that the process maps from then on is to be locked. What the
// program itself needs, a heap and stacks, is made before, so that a small RLIMIT_MEMLOCK meets the library and not the
// program.
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { kThreads = 24 };
static const size_t kHeapBytes = (size_t)1 << 30;  // a page of it takes memory when it is used
static const size_t kStackBytes = (size_t)256 << 10;

static void* meet(void* barrier) {
  pthread_barrier_wait(barrier);
  return NULL;
}

// Stacks of threads that have ended are kept by the C library for those that come. The library's own threads ask for
// larger ones and do not get them.
static void make_stacks(void) {
  pthread_attr_t attributes;
  pthread_barrier_t barrier;
  pthread_t threads[kThreads];
  if (pthread_getattr_default_np(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  pthread_barrier_init(&barrier, NULL, kThreads + 1);
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, meet, &barrier) != 0) abort();
  }
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
}

__attribute__((constructor)) static void lock_all(void) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_ARENA_MAX, 1);
  void* volatile heap = malloc(kHeapBytes);
  free(heap);
  make_stacks();
  if (mlockall(MCL_FUTURE) != 0) {
    perror("lock_all: mlockall");
    _Exit(125);
  }
}
