// SPDX-License-Identifier: BSD-3-Clause
// What the face of a version costs: the calls of the data path, by a program of either version. face_costs.sh counts
// what callgrind collects inside the functions face_*(). Both ends are this process, so that the work below the faces
// is the same.
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

constexpr int kRounds = 100;
constexpr DAT_COUNT kDepth = 16;
constexpr DAT_UINT32 kBytes = 64;
constexpr DAT_TIMEOUT kSoon = 10'000'000;

void check(DAT_RETURN rc, const char* call) {
  if (rc == DAT_SUCCESS) return;
  std::fprintf(stderr, "%s: %#x %s\n", call, static_cast<unsigned>(rc), anydat_last_error());
  std::exit(1);
}

DAT_EVENT wait_for(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  DAT_COUNT more = 0;
  check(dat_evd_wait(evd, kSoon, 1, &event, &more), "dat_evd_wait");
  return event;
}

DAT_EVD_HANDLE evd_of(DAT_IA_HANDLE ia, DAT_COUNT size, DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  check(dat_evd_create(ia, size, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
  return evd;
}

struct End {
  DAT_EVD_HANDLE events;
  DAT_EVD_HANDLE connect;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

  End(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz)
      : events(evd_of(ia, 4 * kDepth, DAT_EVD_DTO_FLAG)), connect(evd_of(ia, 4, DAT_EVD_CONNECTION_FLAG)) {
    check(dat_ep_create(ia, pz, events, events, connect, nullptr, &ep), "dat_ep_create");
  }
};

// What is registered, as its own process names it and as its peer does.
struct Memory {
  DAT_LMR_TRIPLET local{};
  DAT_RMR_TRIPLET remote{};

  Memory(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz) {
    static char bytes[8192];
    DAT_REGION_DESCRIPTION region{};
    region.for_va = bytes;
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_VLEN registered = 0;
    DAT_VADDR address = 0;
    const auto rights = static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
                                                        DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
    check(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof bytes, pz, rights,
#if ANYDAT_FACE == 20
                         DAT_VA_TYPE_VA,
#endif
                         &lmr, &local.lmr_context, &remote.rmr_context, &registered, &address),
          "dat_lmr_create");
    local.virtual_address = address;
    local.segment_length = kBytes;
#if ANYDAT_FACE == 20
    remote.virtual_address = address + 2048;
#else
    remote.target_address = address + 2048;
#endif
    remote.segment_length = kBytes;
  }
};

void connect(DAT_IA_HANDLE ia, const End& ours, const End& theirs) {
  const DAT_EVD_HANDLE requests = evd_of(ia, 4, DAT_EVD_CR_FLAG);
  DAT_CONN_QUAL qualifier = 0;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  check(dat_psp_create_any(ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
  DAT_IA_ATTR attributes;
  check(dat_ia_query(ia, nullptr, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, DAT_PROVIDER_FIELD_NONE, nullptr),
        "dat_ia_query");
  check(dat_ep_connect(ours.ep, attributes.ia_address_ptr, qualifier, kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT,
                       DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  const DAT_EVENT request = wait_for(requests);
  check(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, theirs.ep, 0, nullptr), "dat_cr_accept");
  (void)wait_for(ours.connect);
  (void)wait_for(theirs.connect);
}

extern "C" {
[[gnu::noinline]] DAT_RETURN face_post_send(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* segment) {
  return dat_ep_post_send(ep, 1, segment, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
}
[[gnu::noinline]] DAT_RETURN face_post_send_two(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* segments) {
  return dat_ep_post_send(ep, 2, segments, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
}
[[gnu::noinline]] DAT_RETURN face_post_recv(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* segment) {
  return dat_ep_post_recv(ep, 1, segment, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
}
[[gnu::noinline]] DAT_RETURN face_rdma_write(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* segment, DAT_RMR_TRIPLET* remote) {
  return dat_ep_post_rdma_write(ep, 1, segment, DAT_DTO_COOKIE{}, remote, DAT_COMPLETION_DEFAULT_FLAG);
}
[[gnu::noinline]] DAT_RETURN face_rdma_read(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* segment, DAT_RMR_TRIPLET* remote) {
  return dat_ep_post_rdma_read(ep, 1, segment, DAT_DTO_COOKIE{}, remote, DAT_COMPLETION_DEFAULT_FLAG);
}
[[gnu::noinline]] DAT_RETURN face_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_LMR_TRIPLET* segment) {
  return dat_srq_post_recv(srq, 1, segment, DAT_DTO_COOKIE{});
}
[[gnu::noinline]] DAT_RETURN face_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT* event) {
  return dat_evd_dequeue(evd, event);
}
}

void run(const End& ours, const End& theirs, DAT_SRQ_HANDLE srq, const Memory& memory) {
  DAT_LMR_TRIPLET from[2] = {memory.local, memory.local};
  from[1].virtual_address += kBytes;
  DAT_LMR_TRIPLET into = memory.local;
  into.virtual_address += 4096;
  into.segment_length = 4 * kBytes;
  DAT_RMR_TRIPLET remote = memory.remote;
  for (int round = 0; round < kRounds; ++round) {
    check(face_post_recv(theirs.ep, &into), "dat_ep_post_recv");
    check(face_post_send(ours.ep, from), "dat_ep_post_send");
    DAT_EVENT event;
    check(face_dequeue(ours.events, &event), "dat_evd_dequeue");
    (void)wait_for(theirs.events);
    check(dat_ep_post_recv(theirs.ep, 1, &into, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    check(face_post_send_two(ours.ep, from), "dat_ep_post_send");
    (void)wait_for(ours.events);
    (void)wait_for(theirs.events);
    check(face_rdma_write(ours.ep, from, &remote), "dat_ep_post_rdma_write");
    (void)wait_for(ours.events);
    check(face_rdma_read(ours.ep, from, &remote), "dat_ep_post_rdma_read");
    (void)wait_for(ours.events);
    check(face_srq_post_recv(srq, &into), "dat_srq_post_recv");
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
  const Memory memory(ia, pz);
  DAT_SRQ_ATTR attributes{};
  attributes.max_recv_dtos = kRounds;
  attributes.max_recv_iov = 1;
  attributes.low_watermark = DAT_SRQ_LW_DEFAULT;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  check(dat_srq_create(ia, pz, &attributes, &srq), "dat_srq_create");
  const End ours(ia, pz), theirs(ia, pz);
  connect(ia, ours, theirs);
  run(ours, theirs, srq, memory);
  return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS ? 0 : 1;
}
