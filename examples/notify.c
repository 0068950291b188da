/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One thread, several event dispatchers: a notification object (CNO) says which of them has something.
 *
 * The server below serves three client processes from one thread. Requests, connections and messages come to three
 * dispatchers. Waiting on one of them would miss the others; the CNO waits for all. A trigger is a hint: several events
 * may be behind one, so after each the program empties all its dispatchers.
 */
#include "example.h"

enum { CLIENTS = 3, MESSAGES = 200, BUFFERS = 8 };

typedef struct {
  int client; /* its process */
  int number;
} MESSAGE;

/* ---- A client: sends numbered messages ---- */

static void client(DAT_CONN_QUAL qualifier) {
  MESSAGE message = {0};
  SIDE side;
  open_side(&side, &message, sizeof message, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  connect_to(&side, ep, qualifier);
  message.client = (int)getpid();
  for (message.number = 0; message.number < MESSAGES; ++message.number) {
    post_send(&side, ep, &message, sizeof message, 0);
    expect_done(side.sent);
  }
  disconnect(&side, ep); /* in order: the server has all messages before it learns of the end */
  close_side(&side);
}

/* ---- The server ---- */

typedef struct {
  SIDE side;
  DAT_SRQ_HANDLE srq;           /* all clients' messages land in its few buffers */
  MESSAGE buffers[BUFFERS];     /* registered */
  int pids[CLIENTS];            /* clients by the order of their first message */
  int next[CLIENTS];            /* the number that is due from each */
  int messages, ended, wakeups; /* so far */
} SERVER;

static void post_buffer(SERVER* server, DAT_UINT64 index) {
  DAT_LMR_TRIPLET buffer = segment(&server->side, &server->buffers[index], sizeof(MESSAGE));
  check(dat_srq_post_recv(server->srq, 1, &buffer, cookie(index)), "dat_srq_post_recv");
}

static void drain(SERVER* server, DAT_EVD_HANDLE evd, void (*handle)(SERVER*, const DAT_EVENT*)) {
  DAT_EVENT event;
  DAT_RETURN status;
  while ((status = dat_evd_dequeue(evd, &event)) == DAT_SUCCESS) handle(server, &event);
  require(DAT_GET_TYPE(status) == DAT_QUEUE_EMPTY, "a dispatcher ends by being empty");
}

static void on_message(SERVER* server, const DAT_EVENT* event) {
  const DAT_DTO_COMPLETION_EVENT_DATA* done = &event->event_data.dto_completion_event_data;
  const MESSAGE* message = &server->buffers[done->user_cookie.as_64];
  int i = 0;
  require(done->status == DAT_DTO_SUCCESS && done->transfered_length == sizeof *message, "messages arrive whole");
  while (i < CLIENTS && server->pids[i] != 0 && server->pids[i] != message->client) ++i;
  require(i < CLIENTS, "only the clients send messages");
  server->pids[i] = message->client;
  require(message->number == server->next[i]++, "the messages of each client arrive in order");
  ++server->messages;
  post_buffer(server, done->user_cookie.as_64);
}

static void on_request(SERVER* server, const DAT_EVENT* event) {
  DAT_EP_HANDLE ep;
  DAT_EP_ATTR attributes = {0};
  attributes.max_message_size = sizeof(MESSAGE);
  attributes.max_request_iov = 1;
  attributes.max_recv_dtos = DAT_HW_DEFAULT; /* no limit on the share of one client */
  attributes.srq_soft_hw = DAT_HW_DEFAULT;
  check(dat_ep_create_with_srq(server->side.ia, server->side.pz, server->side.received, DAT_HANDLE_NULL,
                               server->side.connections, server->srq, &attributes, &ep),
        "dat_ep_create_with_srq");
  check(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL), "dat_cr_accept");
}

static void on_connection(SERVER* server, const DAT_EVENT* event) {
  if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) return;
  require(event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED, "clients leave in order");
  drain(server, server->side.received, on_message); /* its last messages are there: they came before its end */
  check(dat_ep_free(event->event_data.connect_event_data.ep_handle), "dat_ep_free");
  ++server->ended;
}

int main(void) {
  static SERVER server;
  SIDE* side = &server.side;
  PEER peers[CLIENTS];
  for (int i = 0; i < CLIENTS; ++i) peers[i] = start_peer(client);

  open_side(side, server.buffers, sizeof server.buffers, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_SRQ_ATTR attributes = {BUFFERS, 1, DAT_SRQ_LW_DEFAULT};
  check(dat_srq_create(side->ia, side->pz, &attributes, &server.srq), "dat_srq_create");
  for (int i = 0; i < BUFFERS; ++i) post_buffer(&server, (DAT_UINT64)i);

  /* The dispatchers get their notification object before anything can happen. */
  DAT_CNO_HANDLE cno;
  check(dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
  check(dat_evd_modify_cno(side->requests, cno), "dat_evd_modify_cno");
  check(dat_evd_modify_cno(side->connections, cno), "dat_evd_modify_cno");
  check(dat_evd_modify_cno(side->received, cno), "dat_evd_modify_cno");
  const DAT_CONN_QUAL qualifier = listen_anywhere(side);
  for (int i = 0; i < CLIENTS; ++i) tell_peer(&peers[i], qualifier);

  while (server.ended < CLIENTS) {
    DAT_EVD_HANDLE hint;
    check(dat_cno_wait(cno, PATIENCE, &hint), "dat_cno_wait");
    ++server.wakeups;
    drain(&server, side->requests, on_request);
    drain(&server, side->received, on_message);
    drain(&server, side->connections, on_connection);
  }
  require(server.messages == CLIENTS * MESSAGES, "no message is missing");
  for (int i = 0; i < CLIENTS; ++i) finish_peer(&peers[i]);
  printf("%d messages of %d clients, all in order, by waiting %d times\n", server.messages, CLIENTS, server.wakeups);
  close_side(side);
  return 0;
}
