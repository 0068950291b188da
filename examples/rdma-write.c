/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDMA Write with notification: one side puts blocks into the memory of the other, then says so.
 *
 * The owner of the memory makes it writable for peers and sends its address and key. The writer writes a block and
 * posts a Send behind it. The owner is not told of a Write; but when the Send arrives, all that was written before it
 * on the same connection is in place. So the data move without a receive buffer, and one small message per block is
 * enough.
 */
#include "example.h"

enum { BLOCKS = 8, BLOCK_BYTES = 256 << 10 };

typedef struct {
  unsigned char blocks[BLOCKS][BLOCK_BYTES]; /* the owner's are written to, the writer's are written from */
  DAT_RMR_TRIPLET invitation;                /* from the owner to the writer: where to write */
  int notes[BLOCKS];                         /* from the writer to the owner: which block is complete */
} MEMORY;

static MEMORY memory;

static unsigned char pattern(int block, int i) {
  return (unsigned char)(block * 37 + i * 11 + (i >> 8));
}

static void writer(DAT_CONN_QUAL qualifier) {
  SIDE side;
  open_side(&side, &memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  post_receive(&side, ep, &memory.invitation, sizeof memory.invitation, 0);
  connect_to(&side, ep, qualifier);
  expect_done(side.received);

  for (int block = 0; block < BLOCKS; ++block) {
    for (int i = 0; i < BLOCK_BYTES; ++i) memory.blocks[block][i] = pattern(block, i);
    memory.notes[block] = block;
    DAT_LMR_TRIPLET source = segment(&side, memory.blocks[block], BLOCK_BYTES);
    DAT_RMR_TRIPLET target = memory.invitation;
    target.target_address += (DAT_VADDR)block * BLOCK_BYTES;
    target.segment_length = BLOCK_BYTES;
    /* No completion of its own unless it fails: the one of the Send behind it says enough. */
    check(dat_ep_post_rdma_write(ep, 1, &source, cookie(0), &target, DAT_COMPLETION_SUPPRESS_FLAG),
          "dat_ep_post_rdma_write");
    post_send(&side, ep, &memory.notes[block], sizeof memory.notes[block], (DAT_UINT64)block);
  }
  for (int block = 0; block < BLOCKS; ++block) {
    require(expect_done(side.sent).user_cookie.as_64 == (DAT_UINT64)block, "requests complete in their order");
  }
  disconnect(&side, ep);
  close_side(&side);
}

int main(void) {
  const PEER peer = start_peer(writer);
  SIDE side;
  open_side(&side, &memory, sizeof memory,
            DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side);
  for (int block = 0; block < BLOCKS; ++block) {
    post_receive(&side, ep, &memory.notes[block], sizeof memory.notes[block], (DAT_UINT64)block);
  }
  tell_peer(&peer, listen_anywhere(&side));
  accept_with(&side, ep);

  /* The key opens the whole region; a window (rmr-window.c) would open a part of it, and for a time. */
  memory.invitation.rmr_context = side.rmr_context;
  memory.invitation.target_address = (DAT_VADDR)(uintptr_t)memory.blocks;
  memory.invitation.segment_length = sizeof memory.blocks;
  post_send(&side, ep, &memory.invitation, sizeof memory.invitation, 0);
  expect_done(side.sent);

  for (int n = 0; n < BLOCKS; ++n) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = expect_done(side.received);
    const int block = memory.notes[done.user_cookie.as_64];
    require(block == n, "notes arrive in order");
    for (int i = 0; i < BLOCK_BYTES; ++i) {
      require(memory.blocks[block][i] == pattern(block, i), "a block is complete when its note arrives");
    }
  }
  printf("%d blocks of %d KiB were written into this process, each complete when its note came\n", BLOCKS,
         BLOCK_BYTES >> 10);
  expect(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED);
  close_side(&side);
  finish_peer(&peer);
  return 0;
}
