// SPDX-License-Identifier: BSD-3-Clause
/* Says what an installed DAPL 2.x (libdat2) does for shared receive queues:
 * calls each SRQ function, prints what it returns, then connects two endpoints
 * of this process and sends through the SRQ.  It judges nothing.
 *
 * usage: dapl2-srq-probe IA-NAME
 * build: cc -o dapl2-srq-probe dapl2-srq-probe.c -ldat2   (libdapl-dev)
 */
#include <dat2/udat.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF = 256, BUFS = 64, PORT = 45999 };

static char mem[BUF * BUFS] __attribute__((aligned(4096)));
static DAT_LMR_CONTEXT lmr_ctx;

static const char *str(DAT_RETURN r)
{
	static char buf[256];
	const char *major = "?", *minor = "?";

	if (r == DAT_SUCCESS)
		return "DAT_SUCCESS";
	dat_strerror(r, &major, &minor);
	snprintf(buf, sizeof buf, "%s %s (0x%x)", major, minor, r);
	return buf;
}

static DAT_RETURN show(const char *what, DAT_RETURN r)
{
	printf("%-54s %s\n", what, str(r));
	return r;
}

static void must(const char *what, DAT_RETURN r)
{
	if (show(what, r) != DAT_SUCCESS)
		exit(1);
}

static void query(DAT_SRQ_HANDLE srq)
{
	DAT_SRQ_PARAM p;

	memset(&p, 0x5a, sizeof p);
	if (show("dat_srq_query(ALL)", dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &p)))
		return;
	printf("    state %d max_recv_dtos %d max_recv_iov %d low_watermark %d "
	       "available %d outstanding %d\n", p.srq_state, p.max_recv_dtos,
	       p.max_recv_iov, p.low_watermark, p.available_dto_count,
	       p.outstanding_dto_count);
}

static DAT_LMR_TRIPLET seg(int n)
{
	DAT_LMR_TRIPLET t = { .virtual_address = (uintptr_t)(mem + n * BUF),
			      .segment_length = BUF, .lmr_context = lmr_ctx };
	return t;
}

static DAT_RETURN post(DAT_SRQ_HANDLE srq, int n)
{
	DAT_LMR_TRIPLET t = seg(n);
	DAT_DTO_COOKIE c = { .as_64 = 1000 + n };

	return dat_srq_post_recv(srq, 1, &t, c);
}

/* Prints the events of an EVD until none comes for this long. */
static int drain(const char *name, DAT_EVD_HANDLE evd, DAT_TIMEOUT us)
{
	DAT_EVENT e;
	DAT_COUNT more;
	int n = 0;

	while (dat_evd_wait(evd, us, 1, &e, &more) == DAT_SUCCESS) {
		n++;
		if (e.event_number == DAT_DTO_COMPLETION_EVENT) {
			DAT_DTO_COMPLETION_EVENT_DATA *d = &e.event_data.dto_completion_event_data;
			printf("    %s: DTO ep %p cookie %llu status %d length %llu\n", name,
			       (void *)d->ep_handle, (unsigned long long)d->user_cookie.as_64,
			       d->status, (unsigned long long)d->transfered_length);
		} else if ((e.event_number & 0xff000) == 0x8000) {
			DAT_ASYNCH_ERROR_EVENT_DATA *d = &e.event_data.asynch_error_event_data;
			printf("    %s: event 0x%x handle %p reason %d\n", name,
			       e.event_number, (void *)d->dat_handle, d->reason);
		} else {
			printf("    %s: event 0x%x\n", name, e.event_number);
		}
	}
	if (!n)
		printf("    %s: nothing\n", name);
	return n;
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, cr, conn, rcv, req, creq, crcv;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR ia_attr;
	DAT_PROVIDER_ATTR pa;
	DAT_PZ_HANDLE pz, pz2;
	DAT_SRQ_HANDLE srq, srq2;
	DAT_EP_HANDLE ep, ep2, cep;
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT rmr;
	DAT_VLEN len;
	DAT_VADDR va;
	DAT_EVENT ev;
	DAT_COUNT more, a, b;
	DAT_EP_ATTR attr;
	DAT_EP_PARAM epp;
	DAT_DTO_COOKIE cookie;
	DAT_LMR_TRIPLET t;
	DAT_REGION_DESCRIPTION reg = { .for_va = mem };
	int i, n;

	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	must("dat_ia_open", dat_ia_open(argv[1], 16, &async, &ia));
	/* What stays 0x5a5a5a5a (1515870810) the provider did not fill in. */
	memset(&ia_attr, 0x5a, sizeof ia_attr);
	memset(&pa, 0x5a, sizeof pa);
	must("dat_ia_query", dat_ia_query(ia, &async, DAT_IA_FIELD_ALL, &ia_attr,
					  DAT_PROVIDER_FIELD_ALL, &pa));
	printf("    provider %s %u.%u, DAPL %u.%u\n", pa.provider_name,
	       pa.provider_version_major, pa.provider_version_minor,
	       pa.dapl_version_major, pa.dapl_version_minor);
	printf("    provider attributes: srq_supported %d srq_watermarks_supported %d "
	       "srq_ep_pz_difference_supported %d srq_info_supported %d "
	       "ep_recv_info_supported %d\n", pa.srq_supported,
	       pa.srq_watermarks_supported, pa.srq_ep_pz_difference_supported,
	       pa.srq_info_supported, pa.ep_recv_info_supported);
	printf("    IA attributes: max_srqs %d max_ep_per_srq %d max_recv_per_srq %d\n",
	       ia_attr.max_srqs, ia_attr.max_ep_per_srq, ia_attr.max_recv_per_srq);

	must("dat_pz_create", dat_pz_create(ia, &pz));
	must("dat_pz_create (second)", dat_pz_create(ia, &pz2));
	must("dat_lmr_create", dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, reg, sizeof mem,
		pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &lmr_ctx, &rmr, &len, &va));
	must("dat_evd_create cr", dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr));
	must("dat_evd_create conn", dat_evd_create(ia, 16, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn));
	must("dat_evd_create rcv", dat_evd_create(ia, 128, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &rcv));
	must("dat_evd_create req", dat_evd_create(ia, 128, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &req));
	must("dat_evd_create client's rcv", dat_evd_create(ia, 128, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &crcv));
	must("dat_evd_create client's req", dat_evd_create(ia, 128, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &creq));

	puts("-- creation, attributes");
	DAT_SRQ_ATTR sa = { .max_recv_dtos = 16, .max_recv_iov = 2, .low_watermark = 8 };
	must("dat_srq_create 16 x 2, low watermark 8", dat_srq_create(ia, pz, &sa, &srq));
	query(srq);
	show("dat_srq_set_lw 4", dat_srq_set_lw(srq, 4));
	query(srq);
	show("dat_srq_resize 32", dat_srq_resize(srq, 32));
	query(srq);
	DAT_SRQ_ATTR sb = { .max_recv_dtos = 16, .max_recv_iov = 1, .low_watermark = 0 };
	if (!show("dat_srq_create 16 x 1, low watermark 0", dat_srq_create(ia, pz, &sb, &srq2))) {
		query(srq2);
		show("dat_srq_free", dat_srq_free(srq2));
	}
	sb = (DAT_SRQ_ATTR){ .max_recv_dtos = 0, .max_recv_iov = 1 };
	if (!show("dat_srq_create max_recv_dtos 0", dat_srq_create(ia, pz, &sb, &srq2)))
		show("dat_srq_free", dat_srq_free(srq2));
	sb = (DAT_SRQ_ATTR){ .max_recv_dtos = 4, .max_recv_iov = 1 };
	if (!show("dat_srq_create 4 x 1, to overfill", dat_srq_create(ia, pz, &sb, &srq2))) {
		query(srq2);
		DAT_RETURN r = DAT_SUCCESS;
		for (n = 0; n < BUFS && !(r = post(srq2, n)); n++)
			;
		printf("    accepted %d posts, then %s\n", n, str(r));
		t = seg(0);
		DAT_LMR_TRIPLET two[2] = { t, t };
		cookie.as_64 = 1;
		show("dat_srq_post_recv of 2 segments on max_recv_iov 1",
		     dat_srq_post_recv(srq2, 2, two, cookie));
		query(srq2);
		show("dat_srq_free with receives posted", dat_srq_free(srq2));
	}

	puts("-- endpoints");
	memset(&attr, 0, sizeof attr);
	attr.service_type = DAT_SERVICE_TYPE_RC;
	attr.max_message_size = BUF;
	attr.max_recv_dtos = attr.max_request_dtos = 16;
	attr.max_recv_iov = attr.max_request_iov = 1;
	if (!show("dat_ep_create_with_srq, EP of another PZ",
		  dat_ep_create_with_srq(ia, pz2, rcv, req, conn, srq, &attr, &ep)))
		show("dat_ep_free", dat_ep_free(ep));
	if (!show("dat_ep_create_with_srq, no recv EVD",
		  dat_ep_create_with_srq(ia, pz, DAT_HANDLE_NULL, req, conn, srq, &attr, &ep)))
		show("dat_ep_free", dat_ep_free(ep));
	must("dat_ep_create_with_srq", dat_ep_create_with_srq(ia, pz, rcv, req, conn, srq, &attr, &ep));
	must("dat_ep_create_with_srq (second EP)", dat_ep_create_with_srq(ia, pz, rcv, req, conn, srq, &attr, &ep2));
	memset(&epp, 0, sizeof epp);
	if (!show("dat_ep_query", dat_ep_query(ep, DAT_EP_FIELD_ALL, &epp)))
		printf("    srq_handle is %s; srq_soft_hw %d max_recv_dtos %d\n",
		       epp.srq_handle == srq ? "the SRQ" : epp.srq_handle ? "something else" : "NULL",
		       epp.ep_attr.srq_soft_hw, epp.ep_attr.max_recv_dtos);
	t = seg(0);
	cookie.as_64 = 1;
	show("dat_ep_post_recv on an EP with SRQ", dat_ep_post_recv(ep, 1, &t, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	a = b = -7;
	if (!show("dat_ep_recv_query", dat_ep_recv_query(ep, &a, &b)))
		printf("    nbufs_allocated %d bufs_alloc_span %d\n", a, b);
	show("dat_ep_set_watermark 4 8", dat_ep_set_watermark(ep, 4, 8));
	show("dat_srq_free with EPs on it", dat_srq_free(srq));
	query(srq);
	show("dat_pz_free with an SRQ on it", dat_pz_free(pz));

	puts("-- data");
	for (i = 0; i < 12; i++)
		must("dat_srq_post_recv", post(srq, i));
	show("dat_srq_set_lw 8 (12 posted)", dat_srq_set_lw(srq, 8));
	query(srq);
	must("dat_psp_create", dat_psp_create(ia, PORT, cr, DAT_PSP_CONSUMER_FLAG, &psp));
	must("dat_ep_create client", dat_ep_create(ia, pz, crcv, creq, conn, &attr, &cep));
	must("dat_ep_connect to itself", dat_ep_connect(cep, ia_attr.ia_address_ptr, PORT,
		10 * 1000 * 1000, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	must("wait for the request", dat_evd_wait(cr, 10 * 1000 * 1000, 1, &ev, &more));
	must("dat_cr_accept", dat_cr_accept(ev.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
	drain("conn", conn, 1000 * 1000);
	printf("    server ep %p client ep %p srq %p\n", (void *)ep, (void *)cep, (void *)srq);
	for (i = 0; i < 6; i++) {
		t = seg(BUFS - 1 - i);
		t.segment_length = 10 + i;
		cookie.as_64 = 2000 + i;
		must("dat_ep_post_send", dat_ep_post_send(cep, 1, &t, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	}
	drain("client req", creq, 500 * 1000);
	drain("server rcv", rcv, 500 * 1000);
	drain("async (6 left of 12, watermark 8)", async, 500 * 1000);
	query(srq);
	a = b = -7;
	if (!show("dat_ep_recv_query", dat_ep_recv_query(ep, &a, &b)))
		printf("    nbufs_allocated %d bufs_alloc_span %d\n", a, b);
	show("dat_srq_set_lw 8 again, already below it", dat_srq_set_lw(srq, 8));
	drain("async", async, 500 * 1000);

	puts("-- end");
	show("dat_ep_disconnect", dat_ep_disconnect(cep, DAT_CLOSE_GRACEFUL_FLAG));
	drain("conn", conn, 1000 * 1000);
	drain("server rcv", rcv, 500 * 1000);
	drain("async", async, 500 * 1000);
	show("dat_ep_free server", dat_ep_free(ep));
	show("dat_ep_free second", dat_ep_free(ep2));
	show("dat_ep_free client", dat_ep_free(cep));
	query(srq);
	show("dat_srq_free with 6 receives posted", dat_srq_free(srq));
	drain("server rcv", rcv, 200 * 1000);
	show("dat_psp_free", dat_psp_free(psp));
	show("dat_lmr_free", dat_lmr_free(lmr));
	show("dat_pz_free", dat_pz_free(pz));
	show("dat_ia_close", dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
