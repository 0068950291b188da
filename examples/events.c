/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Event dispatchers (EVD): time-outs and thresholds.
 *
 * A dispatcher is a queue of events. A program takes them one by one (dat_evd_dequeue never blocks) or waits for them
 * (dat_evd_wait), for as long as it likes and until as many are there as it likes. A threshold is worth having where
 * waking up costs more than the work to be done for one event: one wake-up then serves many.
 */
#include <pthread.h>
#include <time.h>

#include "example.h"

enum { BATCH = 8, BYTES = 32 };

static int numbers[4] = {1, 2, 3, 4}; /* what the software events of this program point to */

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void post(DAT_EVD_HANDLE evd, int index) {
  DAT_EVENT event = {0};
  event.event_number = DAT_SOFTWARE_EVENT;
  event.evd_handle = evd;
  event.event_data.software_event_data.pointer = &numbers[index];
  check(dat_evd_post_se(evd, &event), "dat_evd_post_se");
}

static void* post_the_last(void* evd) {
  post((DAT_EVD_HANDLE)evd, 3);
  return NULL;
}

/* The program's own events show it without any network. */
static void wait_and_dequeue(void) {
  char unused[1];
  SIDE side;
  DAT_EVENT event;
  DAT_COUNT more = -1;
  open_side(&side, unused, sizeof unused, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  DAT_EVD_HANDLE evd = make_evd(side.ia, 8, DAT_EVD_SOFTWARE_FLAG);

  /* Nothing there: dequeue says so at once, wait after its time. */
  require(DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY, "an empty queue is told at once");
  double start = now_ms();
  require(DAT_GET_TYPE(dat_evd_wait(evd, 100000, 1, &event, &more)) == DAT_TIMEOUT_EXPIRED && more == 0,
          "a wait for nothing times out");
  printf("empty: the wait of 100 ms ended after %.0f ms\n", now_ms() - start);
  require(now_ms() - start >= 99, "a wait does not give up early");

  /* Three events do not satisfy a waiter that wants four. They are not taken, only counted. */
  for (int i = 0; i < 3; ++i) post(evd, i);
  require(DAT_GET_TYPE(dat_evd_wait(evd, 100000, 4, &event, &more)) == DAT_TIMEOUT_EXPIRED && more == 3,
          "too few events stay in the queue");
  printf("three events, threshold 4: timed out, and %d are still there\n", (int)more);

  /* The fourth, from another thread, ends the wait. The first event is taken and three are left. */
  pthread_t thread;
  require(pthread_create(&thread, NULL, post_the_last, evd) == 0, "a thread can be started");
  check(dat_evd_wait(evd, PATIENCE, 4, &event, &more), "dat_evd_wait");
  pthread_join(thread, NULL);
  require(*(int*)event.event_data.software_event_data.pointer == 1 && more == 3, "the oldest event comes first");
  printf("a fourth event came: took one, %d are left\n", (int)more);
  for (int i = 1; i < 4; ++i) {
    check(dat_evd_dequeue(evd, &event), "dat_evd_dequeue");
    require(event.event_data.software_event_data.pointer == &numbers[i], "events keep their order");
  }
  close_side(&side);
}

/* A peer that sends a batch of messages. */
static void sender(DAT_CONN_QUAL qualifier) {
  static char memory[BATCH][BYTES];
  SIDE side;
  open_side(&side, memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  connect_to(&side, ep, qualifier);
  for (int i = 0; i < BATCH; ++i) {
    memory[i][0] = (char)i;
    post_send(&side, ep, memory[i], BYTES, 0);
  }
  for (int i = 0; i < BATCH; ++i) expect_done(side.sent);
  expect(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED);
  close_side(&side);
}

int main(void) {
  static char memory[BATCH][BYTES];
  const PEER peer = start_peer(sender);
  wait_and_dequeue();

  SIDE side;
  open_side(&side, memory, sizeof memory, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  for (int i = 0; i < BATCH; ++i) post_receive(&side, ep, memory[i], BYTES, (DAT_UINT64)i);
  tell_peer(&peer, listen_anywhere(&side));
  accept_with(&side, ep);

  /* Sleeps until the whole batch has come. Completions arrive in the order of the messages. */
  DAT_EVENT event;
  DAT_COUNT more = 0;
  check(dat_evd_wait(side.received, PATIENCE, BATCH, &event, &more), "dat_evd_wait");
  require(more == BATCH - 1, "the threshold counts the event that is taken");
  for (int i = 0; i < BATCH; ++i) {
    if (i > 0) check(dat_evd_dequeue(side.received, &event), "dat_evd_dequeue");
    const DAT_DTO_COMPLETION_EVENT_DATA* done = &event.event_data.dto_completion_event_data;
    require(done->status == DAT_DTO_SUCCESS && done->user_cookie.as_64 == (DAT_UINT64)i && memory[i][0] == i,
            "messages arrive whole and in order");
  }
  printf("%d messages, threshold %d: one wait for all of them\n", BATCH, BATCH);
  disconnect(&side, ep);
  close_side(&side);
  finish_peer(&peer);
  return 0;
}
