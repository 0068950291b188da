/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the examples would otherwise each repeat: stopping at a failure, opening an adapter with what belongs to it,
 * connecting, and starting the peer. Each example shows its own subject beside that. (hello.c does without this file
 * and has all the steps in one place; srq-server.cc is a longer program of its own.)
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <anydat/anydat.h>
#include <dat/udat.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 30000000u /* microseconds that a step may take, 30 s */

/* ---- Stopping at a failure ---- */

static inline void check(DAT_RETURN status, const char* call) {
  const char* type = "";
  const char* subtype = "";
  if (status == DAT_SUCCESS) return;
  dat_strerror(status, &type, &subtype);
  fprintf(stderr, "process %d: %s failed with %s %s: %s\n", (int)getpid(), call, type, subtype, anydat_last_error());
  exit(1);
}

static inline void require(int holds, const char* claim) {
  if (holds) return;
  fprintf(stderr, "process %d: it does not hold that %s\n", (int)getpid(), claim);
  exit(1);
}

/* ---- Events ---- */

/* Takes the next event of a dispatcher, which must be of the kind that the program has reached. */
static inline DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;
  check(dat_evd_wait(evd, PATIENCE, 1, &event, &more), "dat_evd_wait");
  if (event.event_number != number) {
    fprintf(stderr, "process %d: event 0x%x came where 0x%x was due\n", (int)getpid(), (unsigned)event.event_number,
            (unsigned)number);
    exit(1);
  }
  return event;
}

/* Takes the next completion of a dispatcher, which must be a success. */
static inline DAT_DTO_COMPLETION_EVENT_DATA expect_done(DAT_EVD_HANDLE evd) {
  const DAT_EVENT event = expect(evd, DAT_DTO_COMPLETION_EVENT);
  require(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS, "the operation succeeded");
  return event.event_data.dto_completion_event_data;
}

/* ---- One side of a connection: an adapter, a zone, four dispatchers and one region of memory ---- */

typedef struct {
  DAT_IA_HANDLE ia;
  DAT_PZ_HANDLE pz;
  DAT_EVD_HANDLE async_evd;   /* errors that belong to no operation, and watermarks */
  DAT_EVD_HANDLE requests;    /* of peers that want to connect */
  DAT_EVD_HANDLE connections; /* what became of them */
  DAT_EVD_HANDLE received;    /* completions of receives */
  DAT_EVD_HANDLE sent;        /* completions of Sends, RDMA and binds */
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context; /* of the whole region, for peers, if its rights say so */
} SIDE;

static inline DAT_EVD_HANDLE make_evd(DAT_IA_HANDLE ia, DAT_COUNT length, DAT_EVD_FLAGS streams) {
  DAT_EVD_HANDLE evd;
  check(dat_evd_create(ia, length, DAT_HANDLE_NULL, streams, &evd), "dat_evd_create");
  return evd;
}

static inline void open_side(SIDE* side, void* memory, size_t bytes, DAT_MEM_PRIV_FLAGS rights) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = memory;
  side->async_evd = DAT_HANDLE_NULL;
  check(dat_ia_open("soft", 8, &side->async_evd, &side->ia), "dat_ia_open");
  check(dat_pz_create(side->ia, &side->pz), "dat_pz_create");
  side->requests = make_evd(side->ia, 16, DAT_EVD_CR_FLAG);
  side->connections = make_evd(side->ia, 16, DAT_EVD_CONNECTION_FLAG);
  side->received = make_evd(side->ia, 64, DAT_EVD_DTO_FLAG);
  side->sent = make_evd(side->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
  check(dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, bytes, side->pz, rights, &side->lmr, &side->lmr_context,
                       &side->rmr_context, NULL, NULL),
        "dat_lmr_create");
}

/* Closing abruptly frees whatever was made through the adapter. */
static inline void close_side(SIDE* side) {
  check(dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
}

static inline DAT_LMR_TRIPLET segment(const SIDE* side, const void* start, size_t bytes) {
  DAT_LMR_TRIPLET triplet = {0};
  triplet.lmr_context = side->lmr_context;
  triplet.virtual_address = (DAT_VADDR)(uintptr_t)start;
  triplet.segment_length = bytes;
  return triplet;
}

static inline DAT_DTO_COOKIE cookie(DAT_UINT64 number) {
  DAT_DTO_COOKIE value;
  value.as_64 = number;
  return value;
}

/* ---- Endpoints and connections ---- */

static inline DAT_EP_HANDLE make_ep(const SIDE* side) {
  DAT_EP_HANDLE ep;
  check(dat_ep_create(side->ia, side->pz, side->received, side->sent, side->connections, NULL, &ep), "dat_ep_create");
  return ep;
}

static inline void post_receive(const SIDE* side, DAT_EP_HANDLE ep, void* start, size_t bytes, DAT_UINT64 number) {
  DAT_LMR_TRIPLET buffer = segment(side, start, bytes);
  check(dat_ep_post_recv(ep, 1, &buffer, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

static inline void post_send(const SIDE* side, DAT_EP_HANDLE ep, const void* start, size_t bytes, DAT_UINT64 number) {
  DAT_LMR_TRIPLET message = segment(side, start, bytes);
  check(dat_ep_post_send(ep, 1, &message, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
}

/* Listens on a free qualifier and returns it. */
static inline DAT_CONN_QUAL listen_anywhere(const SIDE* side) {
  DAT_PSP_HANDLE psp;
  DAT_CONN_QUAL qualifier;
  check(dat_psp_create_any(side->ia, &qualifier, side->requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
  return qualifier;
}

/* Waits for the next request and takes it with this endpoint. */
static inline void accept_with(const SIDE* side, DAT_EP_HANDLE ep) {
  const DAT_EVENT event = expect(side->requests, DAT_CONNECTION_REQUEST_EVENT);
  check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL), "dat_cr_accept");
  expect(side->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Connects this endpoint to a service point of this host. */
static inline void connect_to(const SIDE* side, DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier) {
  DAT_IA_ATTR attributes;
  check(dat_ia_query(side->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, DAT_PROVIDER_FIELD_NONE, NULL),
        "dat_ia_query");
  check(dat_ep_connect(ep, attributes.ia_address_ptr, qualifier, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT,
                       DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  expect(side->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Ends the connection in order: what was posted is still carried out. The peer is told, too. */
static inline void disconnect(const SIDE* side, DAT_EP_HANDLE ep) {
  check(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect(side->connections, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* ---- The peer: a process of its own ---- */

typedef struct {
  pid_t pid;
  int qualifier_fd; /* where it waits to be told the qualifier */
} PEER;

/* Starts a process that runs `program` once it has been told where to connect. The library does not survive a fork, so
 * this comes before the first call of it. */
static inline PEER start_peer(void (*program)(DAT_CONN_QUAL qualifier)) {
  PEER peer;
  int ends[2];
  setvbuf(stdout, NULL, _IOLBF, 0); /* whole lines, whichever process prints them */
  require(pipe(ends) == 0, "a pipe can be made");
  peer.qualifier_fd = ends[1];
  peer.pid = fork();
  require(peer.pid >= 0, "a process can be started");
  if (peer.pid == 0) {
    DAT_CONN_QUAL qualifier;
    close(ends[1]);
    if (read(ends[0], &qualifier, sizeof qualifier) != (ssize_t)sizeof qualifier) exit(1); /* the parent has gone */
    program(qualifier);
    exit(0);
  }
  close(ends[0]);
  return peer;
}

static inline void tell_peer(const PEER* peer, DAT_CONN_QUAL qualifier) {
  require(write(peer->qualifier_fd, &qualifier, sizeof qualifier) == (ssize_t)sizeof qualifier, "the peer is there");
  close(peer->qualifier_fd);
}

/* Waits for the peer's end; all must have been well there, too. */
static inline void finish_peer(const PEER* peer) {
  int status = 1;
  while (waitpid(peer->pid, &status, 0) < 0 && errno == EINTR) continue;
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the peer found all in order");
}

#endif
