/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coming from verbs: the program that everybody writes first with libibverbs and librdmacm, in DAT. A server receives
 * from a client through a shared receive queue, refills it when its limit is reached, and answers at the end.
 *
 *   verbs                                         DAT
 *   ibv_open_device, ibv_query_device             dat_ia_open, dat_ia_query
 *   ibv_alloc_pd                                  dat_pz_create
 *   ibv_reg_mr; its lkey, its rkey                dat_lmr_create; lmr_context, rmr_context
 *   ibv_alloc_mw, ibv_bind_mw                     dat_rmr_create, dat_rmr_bind
 *   ibv_create_cq, ibv_poll_cq                    dat_evd_create, dat_evd_dequeue
 *   ibv_req_notify_cq, ibv_get_cq_event           dat_evd_wait: arms, sleeps and takes in one call
 *   ibv_create_comp_channel for several CQs       dat_cno_create, dat_cno_wait
 *   ibv_create_srq, ibv_post_srq_recv             dat_srq_create, dat_srq_post_recv
 *   ibv_modify_srq: IBV_SRQ_LIMIT                 dat_srq_set_lw
 *   ibv_modify_srq: IBV_SRQ_MAX_WR                dat_srq_resize
 *   ibv_get_async_event                           dat_evd_wait on the EVD that dat_ia_open gave
 *   rdma_create_qp                                dat_ep_create, dat_ep_create_with_srq
 *   ibv_modify_qp to INIT, RTR, RTS               nothing: connecting does it
 *   rdma_listen                                   dat_psp_create
 *   rdma_resolve_addr, _route, rdma_connect       dat_ep_connect
 *   rdma_get_cm_event                             dat_evd_wait on the endpoint's connect EVD
 *   rdma_accept, rdma_reject                      dat_cr_accept, dat_cr_reject
 *   ibv_post_send: IBV_WR_SEND, _RDMA_WRITE,      dat_ep_post_send, dat_ep_post_rdma_write,
 *     _RDMA_READ                                    dat_ep_post_rdma_read
 *   wr_id                                         cookie
 *   no IBV_SEND_SIGNALED                          DAT_COMPLETION_SUPPRESS_FLAG
 *   IBV_SEND_SOLICITED, IBV_SEND_FENCE            DAT_COMPLETION_SOLICITED_WAIT_FLAG, _BARRIER_FENCE_FLAG
 *   rdma_disconnect; QP in ERROR                  dat_ep_disconnect; DISCONNECTED, then dat_ep_reset
 *
 * What has no counterpart: immediate data and atomics (not in DAT 1.2), unreliable transports (DAT has reliable
 * connections only). What verbs has no counterpart for: the two counts of dat_srq_query, and limits for the share that
 * one endpoint may take of an SRQ (dat_ep_set_watermark).
 */
#include "example.h"

enum { MESSAGES = 100, BYTES = 256, BUFFERS = 16, LIMIT = 4, LAST = 1000 };

/* ---- The client ---- */

static void client(DAT_CONN_QUAL qualifier) {
  static char memory[2][BYTES]; /* to send from; for the answer */
  SIDE side;
  /* ibv_open_device, ibv_alloc_pd, ibv_create_cq, ibv_reg_mr with IBV_ACCESS_LOCAL_WRITE. Reading is a right of its own
   * here: what is to be sent needs LOCAL_READ. */
  open_side(&side, memory, sizeof memory, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  DAT_EP_HANDLE ep = make_ep(&side); /* rdma_create_qp, with no ibv_qp_init_attr: defaults */
  post_receive(&side, ep, memory[1], BYTES, LAST);
  connect_to(&side, ep, qualifier); /* rdma_resolve_addr, rdma_resolve_route, rdma_connect, rdma_get_cm_event */

  for (int i = 0; i < MESSAGES; ++i) {
    snprintf(memory[0], BYTES, "message %d", i);
    DAT_LMR_TRIPLET sge = segment(&side, memory[0], BYTES);
    /* ibv_post_send with one ibv_sge. wr_id is a cookie. A successful Send completes here because nothing says
     * SUPPRESS, as it does in verbs when IBV_SEND_SIGNALED is set. */
    check(dat_ep_post_send(ep, 1, &sge, cookie((DAT_UINT64)i), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    /* ibv_poll_cq until there is one. The status of a completion is in the event, as in ibv_wc. */
    DAT_EVENT wc;
    while (dat_evd_dequeue(side.sent, &wc) != DAT_SUCCESS) continue;
    require(wc.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS, "the Send completes well");
    require(wc.event_data.dto_completion_event_data.user_cookie.as_64 == (DAT_UINT64)i, "the cookie is given back");
  }
  require(expect_done(side.received).user_cookie.as_64 == LAST, "the answer lands in the buffer posted for it");
  printf("client: the server says '%s'\n", memory[1]);
  disconnect(&side, ep); /* rdma_disconnect, rdma_get_cm_event: RDMA_CM_EVENT_DISCONNECTED */
  close_side(&side);
}

/* ---- The server ---- */

static char buffers[BUFFERS + 1][BYTES]; /* for the SRQ; the last is to send from */

static void post_srq_receive(const SIDE* side, DAT_SRQ_HANDLE srq, DAT_UINT64 index) {
  DAT_LMR_TRIPLET sge = segment(side, buffers[index], BYTES);
  check(dat_srq_post_recv(srq, 1, &sge, cookie(index)), "dat_srq_post_recv"); /* ibv_post_srq_recv */
}

/* IBV_EVENT_SRQ_LIMIT_REACHED. Like that one it comes once and is armed again by setting the limit. */
static int limit_reached(const SIDE* side, DAT_SRQ_HANDLE srq) {
  DAT_EVENT event; /* ibv_get_async_event, without blocking */
  if (dat_evd_dequeue(side->async_evd, &event) != DAT_SUCCESS) return 0;
  const DAT_ASYNCH_ERROR_EVENT_DATA* what = &event.event_data.asynch_error_event_data;
  require(what->dat_handle == srq && what->reason == DAT_SRQ_LOW_WATERMARK_EVENT, "only the limit is reported");
  return 1;
}

int main(void) {
  const PEER peer = start_peer(client);
  SIDE side;
  open_side(&side, buffers, sizeof buffers, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);

  /* ibv_create_srq: max_wr, max_sge; then ibv_modify_srq: srq_limit. */
  DAT_SRQ_HANDLE srq;
  DAT_SRQ_ATTR srq_attributes = {BUFFERS, 1, DAT_SRQ_LW_DEFAULT};
  check(dat_srq_create(side.ia, side.pz, &srq_attributes, &srq), "dat_srq_create");
  for (DAT_UINT64 i = 0; i < BUFFERS; ++i) post_srq_receive(&side, srq, i);
  check(dat_srq_set_lw(srq, LIMIT), "dat_srq_set_lw");

  /* rdma_create_qp with an SRQ. Receive and request completions go where this call says, like recv_cq and send_cq. */
  DAT_EP_HANDLE ep;
  DAT_EP_ATTR qp_attributes = {0};
  qp_attributes.max_message_size = BYTES;
  qp_attributes.max_request_dtos = 1; /* cap.max_send_wr */
  qp_attributes.max_request_iov = 1;  /* cap.max_send_sge */
  qp_attributes.max_recv_dtos = DAT_HW_DEFAULT;
  qp_attributes.srq_soft_hw = DAT_HW_DEFAULT;
  check(dat_ep_create_with_srq(side.ia, side.pz, side.received, side.sent, side.connections, srq, &qp_attributes, &ep),
        "dat_ep_create_with_srq");
  tell_peer(&peer, listen_anywhere(&side)); /* rdma_bind_addr with port 0, rdma_listen, rdma_get_src_port */
  accept_with(&side, ep);                   /* RDMA_CM_EVENT_CONNECT_REQUEST, rdma_accept, RDMA_CM_EVENT_ESTABLISHED */

  /* Buffers that were used are put aside. They go back together, when the limit is reached and all that has arrived is
   * read: a refill that gives back one buffer only would reach the limit with the next message. */
  DAT_UINT64 used[BUFFERS];
  int used_count = 0;
  int refills = 0;
  for (int i = 0; i < MESSAGES; ++i) {
    DAT_EVENT wc;
    DAT_COUNT more;
    if (dat_evd_dequeue(side.received, &wc) != DAT_SUCCESS) { /* ibv_poll_cq found nothing */
      if (limit_reached(&side, srq)) {
        while (used_count > 0) post_srq_receive(&side, srq, used[--used_count]);
        check(dat_srq_set_lw(srq, LIMIT), "dat_srq_set_lw");
        ++refills;
      }
      /* ibv_req_notify_cq, ibv_get_cq_event, ibv_ack_cq_events, ibv_poll_cq: one call, and no race between them. */
      check(dat_evd_wait(side.received, PATIENCE, 1, &wc, &more), "dat_evd_wait");
    }
    /* Endpoint, cookie, length and status, as in ibv_wc. */
    const DAT_DTO_COMPLETION_EVENT_DATA* done = &wc.event_data.dto_completion_event_data;
    char wanted[BYTES];
    snprintf(wanted, sizeof wanted, "message %d", i);
    require(done->status == DAT_DTO_SUCCESS && done->ep_handle == ep, "messages arrive whole");
    require(strcmp(buffers[done->user_cookie.as_64], wanted) == 0, "messages arrive in order");
    used[used_count++] = done->user_cookie.as_64;
  }
  printf("server: %d messages through %d buffers; the limit was reached %d times\n", MESSAGES, BUFFERS, refills);
  require(refills > 0, "so many messages need a refill");

  snprintf(buffers[BUFFERS], BYTES, "thank you for %d messages", MESSAGES);
  post_send(&side, ep, buffers[BUFFERS], BYTES, 0);
  expect_done(side.sent);
  expect(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED);
  close_side(&side);
  finish_peer(&peer);
  return 0;
}
