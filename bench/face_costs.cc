// SPDX-License-Identifier: BSD-3-Clause
// What the face of a version costs: a Send and the event of its completion, by a program of either version.
// face_costs.sh counts what callgrind collects inside face_post_send() and face_dequeue(). Both ends are this process,
// so that the work below the faces is the same.
#if ANYDAT_FACE == 20
#include <dat2/udat.h>
#else
#include <dat/udat.h>
#endif
// clang-format off: the version comes first
#include <anydat/anydat.h>
// clang-format on

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kRounds = 200;
constexpr DAT_COUNT kDepth = 16;

void check(DAT_RETURN rc, const char* call) {
  if (rc == DAT_SUCCESS) return;
  std::fprintf(stderr, "%s: %#x %s\n", call, static_cast<unsigned>(rc), anydat_last_error());
  std::exit(1);
}

DAT_EVENT wait_for(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  DAT_COUNT more = 0;
  check(dat_evd_wait(evd, 10'000'000, 1, &event, &more), "dat_evd_wait");
  return event;
}

struct End {
  DAT_EVD_HANDLE events = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connect = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

  End(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz) {
    check(dat_evd_create(ia, 4 * kDepth, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &events), "dat_evd_create");
    check(dat_evd_create(ia, 4, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connect), "dat_evd_create");
    check(dat_ep_create(ia, pz, events, events, connect, nullptr, &ep), "dat_ep_create");
  }
};

extern "C" {
[[gnu::noinline]] DAT_RETURN face_post_send(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* segment) {
  return dat_ep_post_send(ep, 1, segment, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
}
[[gnu::noinline]] DAT_RETURN face_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT* event) {
  return dat_evd_dequeue(evd, event);
}
}

}  // namespace

int main() {
  char name[] = "soft-lo";
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  check(dat_ia_open(name, 8, &async, &ia), "dat_ia_open");
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  check(dat_pz_create(ia, &pz), "dat_pz_create");
  static char memory[8192];
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_TRIPLET segment{};
  DAT_RMR_CONTEXT remote = 0;
  DAT_VLEN registered = 0;
  DAT_VADDR address = 0;
  const auto rights = static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  check(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz, rights,
#if ANYDAT_FACE == 20
                       DAT_VA_TYPE_VA,
#endif
                       &lmr, &segment.lmr_context, &remote, &registered, &address),
        "dat_lmr_create");
  segment.virtual_address = address;
  segment.segment_length = 64;

  End ours(ia, pz), theirs(ia, pz);
  DAT_EVD_HANDLE requests = DAT_HANDLE_NULL;
  check(dat_evd_create(ia, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests), "dat_evd_create");
  DAT_CONN_QUAL qualifier = 0;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  check(dat_psp_create_any(ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
  DAT_IA_ATTR attributes;
  check(dat_ia_query(ia, nullptr, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, DAT_PROVIDER_FIELD_NONE, nullptr),
        "dat_ia_query");
  check(dat_ep_connect(ours.ep, attributes.ia_address_ptr, qualifier, 10'000'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                       DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  const DAT_EVENT request = wait_for(requests);
  check(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, theirs.ep, 0, nullptr), "dat_cr_accept");
  (void)wait_for(ours.connect);
  (void)wait_for(theirs.connect);

  for (int round = 0; round < kRounds; ++round) {
    DAT_LMR_TRIPLET into = segment;
    into.virtual_address += 4096;
    check(dat_ep_post_recv(theirs.ep, 1, &into, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    check(face_post_send(ours.ep, &segment), "dat_ep_post_send");
    DAT_EVENT event;
    check(face_dequeue(ours.events, &event), "dat_evd_dequeue");
    (void)wait_for(theirs.events);
  }
  return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS ? 0 : 1;
}
