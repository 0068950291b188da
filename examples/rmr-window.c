/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows (RMR): a peer may touch one part of a region, until the window is moved.
 *
 * The owner registers its memory with local rights only, so that no peer can reach it, and binds a window to one drawer
 * of it. The peer writes into that drawer. Then the owner moves the window to another drawer: the new key opens the new
 * one, and the old key opens nothing any more. A peer that uses the old key all the same is stopped: nothing is
 * written, its Write fails, and the connection breaks, since a peer that reaches where it may not is not to be trusted
 * any further.
 */
#include "example.h"

enum { DRAWERS = 3, DRAWER_BYTES = 4096 };

typedef struct {
  char drawers[DRAWERS][DRAWER_BYTES];
  DAT_RMR_TRIPLET keys[2]; /* from the owner to the visitor, one after the other */
  int done;                /* from the visitor to the owner: the Write before this is done */
} MEMORY;

static MEMORY memory;

/* Writes a text into the drawer that this key is for. */
static void post_write(const SIDE* side, DAT_EP_HANDLE ep, const char* text, const DAT_RMR_TRIPLET* key) {
  strcpy(memory.drawers[0], text);
  DAT_LMR_TRIPLET source = segment(side, memory.drawers[0], DRAWER_BYTES);
  check(dat_ep_post_rdma_write(ep, 1, &source, cookie(1), key, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_rdma_write");
}

static void write_and_tell(const SIDE* side, DAT_EP_HANDLE ep, const char* text, const DAT_RMR_TRIPLET* key) {
  post_write(side, ep, text, key);
  expect_done(side->sent);
  post_send(side, ep, &memory.done, sizeof memory.done, 0);
  expect_done(side->sent);
}

static void visitor(DAT_CONN_QUAL qualifier) {
  SIDE side;
  open_side(&side, &memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  for (int i = 0; i < 2; ++i) post_receive(&side, ep, &memory.keys[i], sizeof memory.keys[i], 0);
  connect_to(&side, ep, qualifier);

  expect_done(side.received);
  write_and_tell(&side, ep, "into the first drawer", &memory.keys[0]);
  expect_done(side.received);
  write_and_tell(&side, ep, "into the second drawer", &memory.keys[1]);

  post_write(&side, ep, "where I may not", &memory.keys[0]);
  const DAT_EVENT event = expect(side.sent, DAT_DTO_COMPLETION_EVENT);
  require(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_REMOTE_ACCESS, "the old key is refused");
  expect(side.connections, DAT_CONNECTION_EVENT_BROKEN);
  printf("visitor: the first key did not open anything any more, and the connection is broken\n");
  close_side(&side);
}

/* Binds the window to one drawer and sends its key. The Send may be posted at once: it does not start before the bind
 * is complete. */
static void open_drawer(const SIDE* side, DAT_EP_HANDLE ep, DAT_RMR_HANDLE rmr, int drawer, DAT_RMR_TRIPLET* key) {
  DAT_LMR_TRIPLET part = segment(side, memory.drawers[drawer], DRAWER_BYTES);
  check(dat_rmr_bind(rmr, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, ep, cookie(2), DAT_COMPLETION_DEFAULT_FLAG,
                     &key->rmr_context),
        "dat_rmr_bind");
  key->target_address = part.virtual_address;
  key->segment_length = part.segment_length;
  post_send(side, ep, key, sizeof *key, 0);
  const DAT_EVENT event = expect(side->sent, DAT_RMR_BIND_COMPLETION_EVENT);
  require(event.event_data.rmr_completion_event_data.status == DAT_RMR_BIND_SUCCESS, "the window is bound");
  expect_done(side->sent);
}

int main(void) {
  const PEER peer = start_peer(visitor);
  SIDE side;
  open_side(&side, &memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  DAT_RMR_HANDLE rmr;
  check(dat_rmr_create(side.pz, &rmr), "dat_rmr_create");
  for (int i = 0; i < 2; ++i) post_receive(&side, ep, &memory.done, sizeof memory.done, 0);
  tell_peer(&peer, listen_anywhere(&side));
  accept_with(&side, ep);

  open_drawer(&side, ep, rmr, 0, &memory.keys[0]);
  expect_done(side.received);
  require(strcmp(memory.drawers[0], "into the first drawer") == 0, "the visitor wrote into the first drawer");
  printf("owner: drawer 0 holds '%s'\n", memory.drawers[0]);

  open_drawer(&side, ep, rmr, 1, &memory.keys[1]); /* and by that the first is closed */
  expect_done(side.received);
  require(strcmp(memory.drawers[1], "into the second drawer") == 0, "the visitor wrote into the second drawer");
  printf("owner: drawer 1 holds '%s'\n", memory.drawers[1]);

  expect(side.connections, DAT_CONNECTION_EVENT_BROKEN);
  require(strcmp(memory.drawers[0], "into the first drawer") == 0 && memory.drawers[2][0] == '\0',
          "no drawer was touched whose key was taken back");
  printf("owner: the attempt with the old key left everything as it was\n");
  close_side(&side);
  finish_peer(&peer);
  return 0;
}
