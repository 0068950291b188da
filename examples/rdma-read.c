/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDMA Read: one side fetches what it wants from the memory of the other, which does nothing for it.
 *
 * The owner offers a table and sleeps until the reader has gone. The reader first looks at the head of the table, which
 * tells how much there is, then fetches the rows, several Reads at a time.
 */
#include <stddef.h>

#include "example.h"

enum { ROWS = 512, ROW_BYTES = 4096, AT_ONCE = 4 };

typedef struct {
  int rows, row_bytes;
} HEAD;

typedef struct {
  HEAD head;
  unsigned char rows[ROWS][ROW_BYTES];
} TABLE;

typedef struct {
  TABLE table;
  DAT_RMR_TRIPLET offer; /* from the owner to the reader: where the table is */
} MEMORY;

static MEMORY memory;

static unsigned char pattern(int row, int i) {
  return (unsigned char)(row * 7 + i * 3 + (i >> 7));
}

/* Fetches `bytes` bytes at this offset of the peer's table to the same offset of ours. */
static void post_read(const SIDE* side, DAT_EP_HANDLE ep, size_t offset, size_t bytes, DAT_UINT64 number) {
  DAT_LMR_TRIPLET sink = segment(side, (char*)&memory.table + offset, bytes);
  DAT_RMR_TRIPLET source = memory.offer;
  source.target_address += offset;
  source.segment_length = bytes;
  check(dat_ep_post_rdma_read(ep, 1, &sink, cookie(number), &source, DAT_COMPLETION_DEFAULT_FLAG),
        "dat_ep_post_rdma_read");
}

static void reader(DAT_CONN_QUAL qualifier) {
  SIDE side;
  open_side(&side, &memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  post_receive(&side, ep, &memory.offer, sizeof memory.offer, 0);
  connect_to(&side, ep, qualifier);
  expect_done(side.received);

  post_read(&side, ep, 0, sizeof(HEAD), 0);
  expect_done(side.sent);
  const HEAD head = memory.table.head;
  require(head.rows == ROWS && head.row_bytes == ROW_BYTES, "the head tells the size of the table");

  /* The bytes are here when the completion is. Completions come in the order of the posts. */
  int posted = 0;
  for (int row = 0; row < head.rows; ++row) {
    while (posted < head.rows && posted < row + AT_ONCE) {
      post_read(&side, ep, offsetof(TABLE, rows) + (size_t)posted * ROW_BYTES, ROW_BYTES, (DAT_UINT64)posted);
      ++posted;
    }
    const DAT_DTO_COMPLETION_EVENT_DATA done = expect_done(side.sent);
    require(done.user_cookie.as_64 == (DAT_UINT64)row && done.transfered_length == ROW_BYTES, "rows come in order");
    for (int i = 0; i < ROW_BYTES; ++i) {
      require(memory.table.rows[row][i] == pattern(row, i), "a row is as its owner wrote it");
    }
  }
  printf("reader: fetched %d rows of %d bytes, %d Reads at a time\n", head.rows, head.row_bytes, AT_ONCE);
  disconnect(&side, ep);
  close_side(&side);
}

int main(void) {
  const PEER peer = start_peer(reader);
  SIDE side;
  memory.table.head.rows = ROWS;
  memory.table.head.row_bytes = ROW_BYTES;
  for (int row = 0; row < ROWS; ++row) {
    for (int i = 0; i < ROW_BYTES; ++i) memory.table.rows[row][i] = pattern(row, i);
  }
  open_side(&side, &memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  tell_peer(&peer, listen_anywhere(&side));
  accept_with(&side, ep);
  memory.offer.rmr_context = side.rmr_context;
  memory.offer.target_address = (DAT_VADDR)(uintptr_t)&memory.table;
  memory.offer.segment_length = sizeof memory.table;
  post_send(&side, ep, &memory.offer, sizeof memory.offer, 0);
  expect_done(side.sent);

  /* Nothing else to do: no receive is posted, and no event tells of a Read. */
  expect(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED);
  DAT_EVENT event;
  require(DAT_GET_TYPE(dat_evd_dequeue(side.received, &event)) == DAT_QUEUE_EMPTY &&
              DAT_GET_TYPE(dat_evd_dequeue(side.sent, &event)) == DAT_QUEUE_EMPTY,
          "the owner was never asked to do anything");
  printf("owner: the table was read without me\n");
  close_side(&side);
  finish_peer(&peer);
  return 0;
}
