/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shared receive queue (SRQ): few buffers for many connections, kept supplied by its low watermark.
 *
 * Four client processes send as fast as they can, and all of it lands in eight buffers. The server puts each buffer
 * aside when it has read it, and gives all of them back when the queue says that it runs low. A client that finds the
 * queue empty is held back meanwhile; nothing is lost. Half-way the queue is made longer, in use. srq-server.cc is the
 * same at length; dat-srq(7) says how many buffers a program needs.
 */
#include "example.h"

enum { CLIENTS = 4, MESSAGES = 500, FEW = 8, MORE = 16, LOW = 3 };

/* ---- A client: sends numbers ---- */

static void client(DAT_CONN_QUAL qualifier) {
  int number = 0;
  SIDE side;
  open_side(&side, &number, sizeof number, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  connect_to(&side, ep, qualifier);
  for (; number < MESSAGES; ++number) {
    post_send(&side, ep, &number, sizeof number, 0);
    expect_done(side.sent);
  }
  disconnect(&side, ep);
  close_side(&side);
}

/* ---- The server ---- */

static struct {
  SIDE side;
  DAT_SRQ_HANDLE srq;
  int buffers[MORE];     /* registered */
  DAT_UINT64 idle[MORE]; /* those that the program has, by index */
  int idle_count;
  DAT_EP_HANDLE eps[CLIENTS];
  int next[CLIENTS];     /* the number that is due on each */
  int messages, refills; /* so far */
} server;

/* Gives the queue all idle buffers and asks to be told, once, when fewer than LOW are left. */
static void refill(void) {
  while (server.idle_count > 0) {
    const DAT_UINT64 index = server.idle[--server.idle_count];
    DAT_LMR_TRIPLET buffer = segment(&server.side, &server.buffers[index], sizeof(int));
    check(dat_srq_post_recv(server.srq, 1, &buffer, cookie(index)), "dat_srq_post_recv");
  }
  check(dat_srq_set_lw(server.srq, LOW), "dat_srq_set_lw");
  ++server.refills;
}

static void accept_client(int i) {
  const DAT_EVENT event = expect(server.side.requests, DAT_CONNECTION_REQUEST_EVENT);
  DAT_EP_ATTR attributes = {0};
  attributes.max_message_size = sizeof(int);
  attributes.max_request_iov = 1;
  attributes.max_recv_dtos = DAT_HW_DEFAULT; /* no limit on the share of one client */
  attributes.srq_soft_hw = DAT_HW_DEFAULT;
  check(dat_ep_create_with_srq(server.side.ia, server.side.pz, server.side.received, DAT_HANDLE_NULL,
                               server.side.connections, server.srq, &attributes, &server.eps[i]),
        "dat_ep_create_with_srq");
  check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, server.eps[i], 0, NULL), "dat_cr_accept");
}

/* The cookie says which buffer it is, the endpoint whose message is in it. */
static void read_message(const DAT_DTO_COMPLETION_EVENT_DATA* done) {
  int i = 0;
  while (i < CLIENTS && server.eps[i] != done->ep_handle) ++i;
  require(i < CLIENTS && done->status == DAT_DTO_SUCCESS, "messages arrive on endpoints of the queue");
  require(server.buffers[done->user_cookie.as_64] == server.next[i]++, "the messages of each client are in order");
  server.idle[server.idle_count++] = done->user_cookie.as_64;
  ++server.messages;
}

int main(void) {
  SIDE* side = &server.side;
  PEER peers[CLIENTS];
  DAT_EVENT event;
  int low = 0;
  for (int i = 0; i < CLIENTS; ++i) peers[i] = start_peer(client);

  /* The queue, and its first buffers: before anybody can send. */
  open_side(side, server.buffers, sizeof server.buffers, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_SRQ_ATTR attributes = {FEW, 1, DAT_SRQ_LW_DEFAULT};
  check(dat_srq_create(side->ia, side->pz, &attributes, &server.srq), "dat_srq_create");
  for (DAT_UINT64 i = 0; i < FEW; ++i) server.idle[server.idle_count++] = i;
  refill();

  /* Messages and the watermark's event come to two dispatchers; the notification object waits for both. */
  DAT_CNO_HANDLE cno;
  check(dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
  check(dat_evd_modify_cno(side->received, cno), "dat_evd_modify_cno");
  check(dat_evd_modify_cno(side->async_evd, cno), "dat_evd_modify_cno");
  const DAT_CONN_QUAL qualifier = listen_anywhere(side);
  for (int i = 0; i < CLIENTS; ++i) tell_peer(&peers[i], qualifier);
  for (int i = 0; i < CLIENTS; ++i) accept_client(i);

  while (server.messages < CLIENTS * MESSAGES) {
    const int before = server.messages;
    DAT_EVD_HANDLE hint;
    check(dat_cno_wait(cno, PATIENCE, &hint), "dat_cno_wait");
    while (dat_evd_dequeue(side->received, &event) == DAT_SUCCESS)
      read_message(&event.event_data.dto_completion_event_data);
    while (dat_evd_dequeue(side->async_evd, &event) == DAT_SUCCESS) {
      require(event.event_data.asynch_error_event_data.reason == DAT_SRQ_LOW_WATERMARK_EVENT, "the queue runs low");
      low = 1;
    }
    if (before < CLIENTS * MESSAGES / 2 && server.messages >= CLIENTS * MESSAGES / 2) {
      check(dat_srq_resize(server.srq, MORE), "dat_srq_resize");
      for (DAT_UINT64 i = FEW; i < MORE; ++i) server.idle[server.idle_count++] = i;
    }
    if (!low || server.idle_count == 0) continue; /* its buffers may still be on their way to us */
    low = 0;
    refill();
  }

  /* Every buffer is with the program or on the queue. */
  DAT_SRQ_PARAM state;
  check(dat_srq_query(server.srq, DAT_SRQ_FIELD_ALL, &state), "dat_srq_query");
  require(state.max_recv_dtos >= MORE, "the queue is as long as was asked");
  require(server.idle_count + state.outstanding_dto_count == MORE, "no buffer is missing");
  for (int i = 0; i < CLIENTS; ++i) finish_peer(&peers[i]);
  printf("%d messages of %d clients through %d, then %d buffers, in %d refills\n", server.messages, CLIENTS, FEW, MORE,
         server.refills);
  close_side(side);
  return 0;
}
