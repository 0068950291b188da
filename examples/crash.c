/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer that dies: what the survivor is told, and how it goes on.
 *
 * The peer connects, sends one message and is killed without a chance to disconnect. The survivor has receives posted
 * and one long Send under way. It learns of the death by a connection event, BROKEN in place of DISCONNECTED, and each
 * operation that was not done completes with a status that says so: every post has exactly one completion, so the
 * program gets all of its buffers back. After a reset the same endpoint serves the next peer.
 */
#include <signal.h>

#include "example.h"

enum { RECEIVES = 4, BYTES = 64, LONG_BYTES = 4 << 20 };

static char buffers[RECEIVES * BYTES + LONG_BYTES];

static void say_hello(const SIDE* side, DAT_EP_HANDLE ep) {
  strcpy(buffers, "hello");
  post_send(side, ep, buffers, BYTES, 0);
  expect_done(side->sent);
}

/* Posts no receive, so the survivor's Send stays under way; then waits for its end, which comes from outside. */
static void victim(DAT_CONN_QUAL qualifier) {
  SIDE side;
  open_side(&side, buffers, sizeof buffers, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  connect_to(&side, ep, qualifier);
  say_hello(&side, ep);
  DAT_EVENT event;
  DAT_COUNT more;
  dat_evd_wait(side.connections, PATIENCE, 1, &event, &more);
  exit(1);
}

static void successor(DAT_CONN_QUAL qualifier) {
  SIDE side;
  open_side(&side, buffers, sizeof buffers, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  connect_to(&side, ep, qualifier);
  say_hello(&side, ep);
  disconnect(&side, ep);
  close_side(&side);
}

static void expect_hello(const SIDE* side) {
  const DAT_DTO_COMPLETION_EVENT_DATA done = expect_done(side->received);
  require(strcmp(buffers + done.user_cookie.as_64 * BYTES, "hello") == 0, "the peer says hello");
}

static void post_receives(const SIDE* side, DAT_EP_HANDLE ep) {
  for (DAT_UINT64 i = 0; i < RECEIVES; ++i) post_receive(side, ep, buffers + i * BYTES, BYTES, i);
}

static void expect_flushed(const SIDE* side, int count) {
  for (int i = 0; i < count; ++i) {
    const DAT_EVENT event = expect(side->received, DAT_DTO_COMPLETION_EVENT);
    require(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED, "unused receives are flushed");
  }
}

int main(void) {
  const PEER first = start_peer(victim);
  const PEER second = start_peer(successor);

  SIDE side;
  open_side(&side, buffers, sizeof buffers, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  post_receives(&side, ep);
  const DAT_CONN_QUAL qualifier = listen_anywhere(&side);
  tell_peer(&first, qualifier);
  accept_with(&side, ep);
  expect_hello(&side);
  post_send(&side, ep, buffers + RECEIVES * BYTES, LONG_BYTES, 99);

  kill(first.pid, SIGKILL);
  expect(side.connections, DAT_CONNECTION_EVENT_BROKEN);
  printf("the peer was killed: the connection is broken\n");

  /* The Send failed, or, where the network buffers that much, was already on its way. */
  const DAT_EVENT event = expect(side.sent, DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA* send = &event.event_data.dto_completion_event_data;
  require(send->user_cookie.as_64 == 99, "the completion is of the Send");
  printf("the Send under way completed with status %d (%d is success, %d flushed, %d the peer is gone)\n",
         (int)send->status, (int)DAT_DTO_SUCCESS, (int)DAT_DTO_ERR_FLUSHED, (int)DAT_DTO_ERR_TRANSPORT);
  expect_flushed(&side, RECEIVES - 1);
  printf("%d receives that no message came for were flushed\n", RECEIVES - 1);

  DAT_EP_STATE state;
  DAT_BOOLEAN recv_idle;
  DAT_BOOLEAN request_idle;
  check(dat_ep_get_status(ep, &state, &recv_idle, &request_idle), "dat_ep_get_status");
  require(state == DAT_EP_STATE_DISCONNECTED && recv_idle && request_idle, "nothing is left of the old connection");

  /* From DISCONNECTED only a reset leads on, to an endpoint as it was when new. */
  check(dat_ep_reset(ep), "dat_ep_reset");
  post_receives(&side, ep);
  tell_peer(&second, qualifier);
  accept_with(&side, ep);
  expect_hello(&side);
  expect(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED);
  printf("the next peer was served by the same endpoint and left in order\n");
  expect_flushed(&side, RECEIVES - 1);
  close_side(&side);
  while (waitpid(first.pid, NULL, 0) < 0 && errno == EINTR) continue;
  finish_peer(&second);
  return 0;
}
