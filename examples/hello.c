/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The smallest complete DAT program: one process, two endpoints, one message.
 *
 * Every DAT program has these steps: open an adapter; make a protection zone, event dispatchers and endpoints; register
 * memory; post a receive; connect; send; take the completions; close. Here both ends are in one program, so that the
 * steps of the two sides stand next to each other.
 */
#include <dat/udat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEN_SECONDS 10000000u /* DAT counts time in microseconds */

static void check(DAT_RETURN status, const char* call) {
  const char* major;
  const char* minor;
  if (status == DAT_SUCCESS) return;
  dat_strerror(status, &major, &minor);
  fprintf(stderr, "hello: %s failed with %s %s\n", call, major, minor);
  exit(1);
}

/* Takes the next event of a dispatcher, which must be of the kind that the program has reached. */
static DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;
  check(dat_evd_wait(evd, TEN_SECONDS, 1, &event, &more), "dat_evd_wait");
  if (event.event_number != number) {
    fprintf(stderr, "hello: event 0x%x came where 0x%x was due\n", (unsigned)event.event_number, (unsigned)number);
    exit(1);
  }
  return event;
}

static DAT_EVD_HANDLE make_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd;
  check(dat_evd_create(ia, 8, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
  return evd;
}

int main(void) {
  static char memory[128]; /* the first half is sent, the second half receives */
  const char* const greeting = "Hello from the other endpoint.";

  /* An adapter, and a zone that ties endpoints and memory together. */
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz;
  check(dat_ia_open("soft", 8, &async_evd, &ia), "dat_ia_open");
  check(dat_pz_create(ia, &pz), "dat_pz_create");

  /* Dispatchers: one for requests at the service point, one for each side's connection, one for each side's data. */
  DAT_EVD_HANDLE requests = make_evd(ia, DAT_EVD_CR_FLAG);
  DAT_EVD_HANDLE client_connection = make_evd(ia, DAT_EVD_CONNECTION_FLAG);
  DAT_EVD_HANDLE server_connection = make_evd(ia, DAT_EVD_CONNECTION_FLAG);
  DAT_EVD_HANDLE client_data = make_evd(ia, DAT_EVD_DTO_FLAG);
  DAT_EVD_HANDLE server_data = make_evd(ia, DAT_EVD_DTO_FLAG);

  /* Two endpoints with the library's default attributes. */
  DAT_EP_HANDLE client;
  DAT_EP_HANDLE server;
  check(dat_ep_create(ia, pz, client_data, client_data, client_connection, NULL, &client), "dat_ep_create");
  check(dat_ep_create(ia, pz, server_data, server_data, server_connection, NULL, &server), "dat_ep_create");

  /* Memory that endpoints of this zone may read and write. */
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET outgoing = {0};
  DAT_LMR_TRIPLET incoming = {0};
  region.for_va = memory;
  check(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz,
                       DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr, &outgoing.lmr_context, NULL,
                       NULL, NULL),
        "dat_lmr_create");
  strcpy(memory, greeting);
  outgoing.virtual_address = (DAT_VADDR)(uintptr_t)memory;
  outgoing.segment_length = strlen(greeting) + 1;
  incoming.lmr_context = outgoing.lmr_context;
  incoming.virtual_address = (DAT_VADDR)(uintptr_t)(memory + 64);
  incoming.segment_length = 64;

  /* The server posts where the message shall go before it lets anybody connect. */
  DAT_DTO_COOKIE cookie = {0};
  check(dat_ep_post_recv(server, 1, &incoming, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");

  /* It listens on a free qualifier; the client asks for a connection; the server accepts; both are told. */
  DAT_PSP_HANDLE psp;
  DAT_CONN_QUAL qualifier;
  DAT_IA_ATTR attributes;
  check(dat_psp_create_any(ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
  check(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, DAT_PROVIDER_FIELD_NONE, NULL),
        "dat_ia_query");
  check(dat_ep_connect(client, attributes.ia_address_ptr, qualifier, TEN_SECONDS, 0, NULL, DAT_QOS_BEST_EFFORT,
                       DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  DAT_EVENT event = expect(requests, DAT_CONNECTION_REQUEST_EVENT);
  check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, server, 0, NULL), "dat_cr_accept");
  expect(server_connection, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect(client_connection, DAT_CONNECTION_EVENT_ESTABLISHED);

  /* One Send completes once at each end: the sender may use its memory again, the receiver has the message. */
  check(dat_ep_post_send(client, 1, &outgoing, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  event = expect(client_data, DAT_DTO_COMPLETION_EVENT);
  if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) return 1;
  event = expect(server_data, DAT_DTO_COMPLETION_EVENT);
  if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) return 1;
  printf("received %llu bytes: %s\n", (unsigned long long)event.event_data.dto_completion_event_data.transfered_length,
         memory + 64);

  /* Either side may end the connection; both are told. Then everything goes, in the reverse order. */
  check(dat_ep_disconnect(client, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect(client_connection, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect(server_connection, DAT_CONNECTION_EVENT_DISCONNECTED);
  check(dat_psp_free(psp), "dat_psp_free");
  check(dat_ep_free(client), "dat_ep_free");
  check(dat_ep_free(server), "dat_ep_free");
  check(dat_lmr_free(lmr), "dat_lmr_free");
  check(dat_evd_free(client_data), "dat_evd_free");
  check(dat_evd_free(server_data), "dat_evd_free");
  check(dat_evd_free(client_connection), "dat_evd_free");
  check(dat_evd_free(server_connection), "dat_evd_free");
  check(dat_evd_free(requests), "dat_evd_free");
  check(dat_pz_free(pz), "dat_pz_free");
  check(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
  return strcmp(memory, memory + 64) == 0 ? 0 : 1;
}
