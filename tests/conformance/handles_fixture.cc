// SPDX-License-Identifier: BSD-3-Clause
#include "handles_fixture.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <random>

#include "evd_fixture.h"

namespace anydat::test {

const char* name_of_type(DAT_HANDLE_TYPE type) {
  switch (type) {
    case DAT_HANDLE_TYPE_CR:
      return "CR";
    case DAT_HANDLE_TYPE_EP:
      return "EP";
    case DAT_HANDLE_TYPE_EVD:
      return "EVD";
    case DAT_HANDLE_TYPE_IA:
      return "IA";
    case DAT_HANDLE_TYPE_LMR:
      return "LMR";
    case DAT_HANDLE_TYPE_PSP:
      return "PSP";
    case DAT_HANDLE_TYPE_PZ:
      return "PZ";
    case DAT_HANDLE_TYPE_RMR:
      return "RMR";
    case DAT_HANDLE_TYPE_RSP:
      return "RSP";
    case DAT_HANDLE_TYPE_CNO:
      return "CNO";
    case DAT_HANDLE_TYPE_SRQ:
      return "SRQ";
    default:
      break;
  }
  // What version 2.0 alone has.
  return static_cast<int>(type) == DAT_HANDLE_TYPE_SRQ + 1 ? "CSP" : "?";
}

Household::Household(const Wire& wire) {
  create(wire);
}

Household::~Household() {
  dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);  // refused if a test closed it
}

void Household::create(const Wire& wire) {
  require(open_ia(wire, 16, &async_evd, &ia), "dat_ia_open");
  require(dat_pz_create(ia, &pz), "dat_pz_create");
  require(dat_pz_create(ia, &spare_pz), "dat_pz_create");
  require(dat_cno_create(ia, no_agent(), &cno), "dat_cno_create");
  require(dat_cno_create(ia, no_agent(), &spare_cno), "dat_cno_create");
  require(dat_evd_create(ia, 64, cno, flags(0x1F1), &evd), "dat_evd_create");
  require(dat_evd_create(ia, 4, DAT_HANDLE_NULL, flags(0x1F1), &spare_evd), "dat_evd_create");
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory_.data();
  require(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, memory_.size(), pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
                         &lmr_context_, &rmr_context_, nullptr, nullptr),
          "dat_lmr_create");
  require(dat_rmr_create(pz, &rmr), "dat_rmr_create");
  DAT_SRQ_ATTR srq_attr{.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 0};
  require(dat_srq_create(ia, pz, &srq_attr, &srq), "dat_srq_create");
  psp = make_psp(&psp_qualifier);
  other_psp = make_psp(&other_qualifier);
  DAT_CONN_QUAL reserved_qualifier = 0;
  require(dat_psp_free(make_psp(&unused_qualifier)), "dat_psp_free");
  require(dat_psp_free(make_psp(&reserved_qualifier)), "dat_psp_free");
  idle = make_ep();
  reserved = make_ep();
  require(dat_rsp_create(ia, reserved_qualifier, reserved, evd, &rsp), "dat_rsp_create");
  csp = make_csp();
  connect_to_itself();
  ask_itself();
}

DAT_HANDLE Household::make_csp() const {
  DAT_HANDLE made = DAT_HANDLE_NULL;
#if DAT_VERSION_MAJOR >= 2
  DAT_IA_ATTR attributes{};
  require(dat_ia_query(ia, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr), "dat_ia_query");
  sockaddr_storage address{};
  DAT_COMM comm{attributes.ia_address_ptr->sa_family, SOCK_STREAM, 0};
  address.ss_family = attributes.ia_address_ptr->sa_family;  // the wildcard, any port
  require(dat_csp_create(ia, &comm, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), evd, &made), "dat_csp_create");
#endif
  return made;
}

DAT_EP_HANDLE Household::make_ep() const {
  const DAT_EP_ATTR attr = default_ep_attr();
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  require(dat_ep_create(ia, pz, evd, evd, evd, &attr, &ep), "dat_ep_create");
  return ep;
}

DAT_PSP_HANDLE Household::make_psp(DAT_CONN_QUAL* qualifier) const {
  DAT_PSP_HANDLE made = DAT_HANDLE_NULL;
  require(dat_psp_create_any(ia, qualifier, evd, DAT_PSP_CONSUMER_FLAG, &made), "dat_psp_create_any");
  return made;
}

void Household::connect_to_itself() {
  connected = make_ep();
  accepted = make_ep();
  connect(connected, psp_qualifier);
  const DAT_EVENT request = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, accepted, 0, nullptr), "dat_cr_accept");
  expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void Household::ask_itself() {
  asking_ = make_ep();
  connect(asking_, psp_qualifier);
  cr = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

void Household::free_all() {
  require(dat_cr_reject(cr), "dat_cr_reject");
  expect_event(evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
  require(dat_rsp_free(rsp), "dat_rsp_free");
  require(dat_psp_free(psp), "dat_psp_free");
  require(dat_psp_free(other_psp), "dat_psp_free");
#if DAT_VERSION_MAJOR >= 2
  require(dat_csp_free(csp), "dat_csp_free");
#endif
  for (const DAT_EP_HANDLE ep : {idle, connected, accepted, reserved, asking_}) {
    require(dat_ep_free(ep), "dat_ep_free");
  }
  require(dat_srq_free(srq), "dat_srq_free");
  if (rmr != DAT_HANDLE_NULL) require(dat_rmr_free(rmr), "dat_rmr_free");
  require(dat_lmr_free(lmr), "dat_lmr_free");
  require(dat_pz_free(pz), "dat_pz_free");
  require(dat_pz_free(spare_pz), "dat_pz_free");
  require(dat_evd_free(evd), "dat_evd_free");
  require(dat_evd_free(spare_evd), "dat_evd_free");
  require(dat_cno_free(cno), "dat_cno_free");
  require(dat_cno_free(spare_cno), "dat_cno_free");
  require(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
}

DAT_HANDLE Household::of_type(DAT_HANDLE_TYPE type) const {
  switch (type) {
    case DAT_HANDLE_TYPE_CR:
      return cr;
    case DAT_HANDLE_TYPE_EP:
      return idle;
    case DAT_HANDLE_TYPE_EVD:
      return evd;
    case DAT_HANDLE_TYPE_IA:
      return ia;
    case DAT_HANDLE_TYPE_LMR:
      return lmr;
    case DAT_HANDLE_TYPE_PSP:
      return psp;
    case DAT_HANDLE_TYPE_PZ:
      return pz;
    case DAT_HANDLE_TYPE_RMR:
      return rmr;
    case DAT_HANDLE_TYPE_RSP:
      return rsp;
    case DAT_HANDLE_TYPE_CNO:
      return cno;
    case DAT_HANDLE_TYPE_SRQ:
      return srq;
    default:
      return csp;
  }
}

DAT_LMR_TRIPLET Household::segment() const {
  DAT_LMR_TRIPLET triplet{};
  triplet.lmr_context = lmr_context_;
  triplet.virtual_address = reinterpret_cast<DAT_VADDR>(memory_.data());
  triplet.segment_length = 16;
  return triplet;
}

DAT_RMR_TRIPLET Household::remote_segment() const {
  DAT_RMR_TRIPLET triplet{};
  triplet.rmr_context = rmr_context_;
  triplet.target_address = reinterpret_cast<DAT_VADDR>(memory_.data() + 128);
  triplet.segment_length = 16;
  return triplet;
}

std::vector<DAT_HANDLE> impostors(DAT_HANDLE live) {
  const auto handle = [](std::uintptr_t value) { return reinterpret_cast<DAT_HANDLE>(value); };
  const auto base = reinterpret_cast<std::uintptr_t>(live);
  std::vector<DAT_HANDLE> result;
  for (const std::uintptr_t value : {0x1u, 0x2u, 0x3u, 0x7u, 0x8u, 0x10u, 0x40u, 0x1000u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    result.push_back(handle(value));  // small integers, such as another library hands out
    result.push_back(handle(~value));
  }
  result.push_back(handle(~std::uintptr_t{0}));
  result.push_back(handle(std::uintptr_t{1} << 63));
  for (const std::uintptr_t off : {1u, 2u, 4u, 8u, 16u, 24u, 32u, 63u}) {
    result.push_back(handle(base + off));  // inside a live object
    result.push_back(handle(base - off));
  }
  for (const std::uintptr_t off : {std::uintptr_t{1} << 20, std::uintptr_t{1} << 26, std::uintptr_t{1} << 30}) {
    result.push_back(handle(base + off));  // where the next objects might come to lie
    result.push_back(handle(base - off));
  }
  // Memory that is the program's: zeroes, pointers to itself, what begins as a live object does, and a page that may
  // not be read.
  static std::array<void*, 64> zeroes{};
  static std::array<void*, 64> circles{};
  circles.fill(circles.data());
  static std::array<std::byte, 64> copy{};
  std::memcpy(copy.data(), live, sizeof(void*));
  static void* const forbidden = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (void* const memory : {static_cast<void*>(zeroes.data()), static_cast<void*>(circles.data()),
                             static_cast<void*>(copy.data()), forbidden}) {
    result.push_back(memory);
    result.push_back(static_cast<char*>(memory) + 64);
  }
  std::mt19937_64 random(20240229);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t value = random();
    result.push_back(handle(value));
    result.push_back(handle(value & 0x00007FFFFFFFFFC0u));  // an address, aligned as handles are
  }
  std::erase_if(result, [](DAT_HANDLE candidate) {
    DAT_HANDLE_TYPE type{};
    return candidate == DAT_HANDLE_NULL || dat_get_handle_type(candidate, &type) == DAT_SUCCESS;
  });
  return result;
}

}  // namespace anydat::test
