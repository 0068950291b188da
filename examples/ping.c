/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping between two processes: messages go to the other process, come back, and are compared.
 *
 * The parent listens and sends everything back; the child connects, sends and checks. What to look at: receives are
 * posted before the messages for them can arrive, and a buffer is not touched between its post and its completion.
 */
#include <time.h>

#include "example.h"

enum { MESSAGES = 1000, BYTES = 1024 };

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void fill(char* message, int number) {
  for (int i = 0; i < BYTES; ++i) message[i] = (char)(number * 31 + i);
}

static void pinger(DAT_CONN_QUAL qualifier) {
  static char outgoing[BYTES];
  static char incoming[BYTES];
  static char memory[2 * BYTES]; /* what the library may use: the first half is sent, the second receives */
  SIDE side;
  open_side(&side, memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  connect_to(&side, ep, qualifier);

  const double start = now_us();
  for (int i = 0; i < MESSAGES; ++i) {
    fill(outgoing, i);
    memcpy(memory, outgoing, BYTES);
    memset(memory + BYTES, 0, BYTES);
    post_receive(&side, ep, memory + BYTES, BYTES, 0); /* for the answer, so before the question */
    post_send(&side, ep, memory, BYTES, 0);
    expect_done(side.sent); /* the memory of the Send may be used again */
    require(expect_done(side.received).transfered_length == BYTES, "what comes back is as long as what went out");
    memcpy(incoming, memory + BYTES, BYTES);
    require(memcmp(incoming, outgoing, BYTES) == 0, "what comes back is what went out");
  }
  const double mean = (now_us() - start) / MESSAGES;
  disconnect(&side, ep);
  close_side(&side);
  printf("ping: %d messages of %d bytes came back unharmed, %.1f us each\n", MESSAGES, BYTES, mean);
}

int main(void) {
  static char memory[2][BYTES];
  const PEER peer = start_peer(pinger);

  SIDE side;
  open_side(&side, memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  post_receive(&side, ep, memory[0], BYTES, 0);
  tell_peer(&peer, listen_anywhere(&side));
  accept_with(&side, ep);

  /* Two buffers in turn: while the message in one goes back, the other waits for the next. The number of the buffer is
   * the cookie of its receive and comes back with the completion. */
  for (int i = 0; i < MESSAGES; ++i) {
    const DAT_DTO_COMPLETION_EVENT_DATA arrived = expect_done(side.received);
    const DAT_UINT64 buffer = arrived.user_cookie.as_64;
    if (i + 1 < MESSAGES) post_receive(&side, ep, memory[1 - buffer], BYTES, 1 - buffer);
    post_send(&side, ep, memory[buffer], arrived.transfered_length, buffer);
    expect_done(side.sent);
  }
  expect(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED); /* the other side asked for it */
  close_side(&side);
  finish_peer(&peer);
  return 0;
}
