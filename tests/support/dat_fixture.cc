// SPDX-License-Identifier: BSD-3-Clause
#include "support/dat_fixture.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <stdexcept>

#include "support/progress.h"

namespace anydat::test {

void require(DAT_RETURN rc, std::string_view what) {
  if (rc != DAT_SUCCESS) {
    throw std::runtime_error(fmt::format("{}: {}", what, describe(rc)));
  }
}

void note_failed_free(DAT_RETURN rc) {
  EXPECT_THAT(rc, Succeeds()) << "an object could not be freed";
}

Ia::Ia(const Wire& wire, DAT_COUNT async_qlen) {
  const ScopedEnv env(wire.env);
  std::string name = wire.ia_name;
  // As a program asks that is built with DAT_THREADSAFE: many tests call from several threads.
  require(dat_ia_openv(name.data(), async_qlen, &async_evd_, &handle_, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE),
          "dat_ia_open " + wire.ia_name);
  note_open(handle_, wire.ia_name.starts_with("soft"));
}

Ia::Ia(Ia&& other) noexcept
    : handle_(std::exchange(other.handle_, DAT_HANDLE_NULL)),
      async_evd_(std::exchange(other.async_evd_, DAT_HANDLE_NULL)) {}

Ia::~Ia() {
  if (handle_ == DAT_HANDLE_NULL) {
    return;
  }
  note_closed(handle_);
  const DAT_RETURN rc = dat_ia_close(handle_, DAT_CLOSE_GRACEFUL_FLAG);
  EXPECT_THAT(rc, Succeeds()) << "graceful close after everything was freed (INV-8)";
  if (rc != DAT_SUCCESS) {
    (void)dat_ia_close(handle_, DAT_CLOSE_ABRUPT_FLAG);
  }
}

DAT_IA_ATTR Ia::attributes() const {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr{};
  require(dat_ia_query(handle_, &async, DAT_IA_FIELD_ALL, &attr, 0, nullptr), "dat_ia_query");
  return attr;
}

DAT_PROVIDER_ATTR Ia::provider() const {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PROVIDER_ATTR attr{};
  require(dat_ia_query(handle_, &async, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), "dat_ia_query");
  return attr;
}

DAT_RETURN Ia::close(DAT_CLOSE_FLAGS flags) {
  const bool polled = note_closed(handle_);  // before: settle() has an object of it while it works
  const DAT_RETURN rc = dat_ia_close(handle_, flags);
  if (rc != DAT_SUCCESS && handle_ != DAT_HANDLE_NULL) note_open(handle_, polled);
  if (rc == DAT_SUCCESS) {
    handle_ = DAT_HANDLE_NULL;
    async_evd_ = DAT_HANDLE_NULL;
  }
  return rc;
}

Pz::Pz(const Ia& ia) {
  require(dat_pz_create(ia.get(), out()), "dat_pz_create");
}

Evd::Evd(const Ia& ia, DAT_EVD_FLAGS flags, DAT_COUNT qlen, DAT_CNO_HANDLE cno) {
  require(dat_evd_create(ia.get(), qlen, cno, flags, out()), "dat_evd_create");
}

DAT_COUNT Evd::qlen() const {
  DAT_EVD_PARAM param{};
  require(dat_evd_query(get(), DAT_EVD_FIELD_ALL, &param), "dat_evd_query");
  return param.evd_qlen;
}

Lmr::Lmr(const Ia& ia, const Pz& pz, std::size_t bytes, DAT_MEM_PRIV_FLAGS privileges) : own_(bytes), memory_(own_) {
  register_memory(ia, pz, privileges);
}

Lmr::Lmr(const Ia& ia, const Pz& pz, std::span<std::byte> memory, DAT_MEM_PRIV_FLAGS privileges) : memory_(memory) {
  register_memory(ia, pz, privileges);
}

void Lmr::register_memory(const Ia& ia, const Pz& pz, DAT_MEM_PRIV_FLAGS privileges) {
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory_.data();
  DAT_VLEN size = 0;
  DAT_VADDR address = 0;
  require(dat_lmr_create(ia.get(), DAT_MEM_TYPE_VIRTUAL, region, memory_.size(), pz.get(), privileges, out(), &context_,
                         &rmr_context_, &size, &address),
          "dat_lmr_create");
}

DAT_LMR_TRIPLET Lmr::triplet(std::size_t offset, std::size_t length) const {
  DAT_LMR_TRIPLET triplet{};
  triplet.lmr_context = context_;
  triplet.virtual_address = reinterpret_cast<DAT_VADDR>(memory_.data()) + offset;
  triplet.segment_length = length;
  return triplet;
}

DAT_RMR_TRIPLET Lmr::remote(std::size_t offset, std::size_t length) const {
  DAT_RMR_TRIPLET triplet{};
  triplet.rmr_context = rmr_context_;
  triplet.target_address = reinterpret_cast<DAT_VADDR>(memory_.data()) + offset;
  triplet.segment_length = length;
  return triplet;
}

Srq::Srq(const Ia& ia, const Pz& pz, DAT_COUNT max_recv_dtos, DAT_COUNT max_recv_iov, DAT_COUNT low_watermark) {
  DAT_SRQ_ATTR attr{.max_recv_dtos = max_recv_dtos, .max_recv_iov = max_recv_iov, .low_watermark = low_watermark};
  require(dat_srq_create(ia.get(), pz.get(), &attr, out()), "dat_srq_create");
}

DAT_SRQ_PARAM Srq::query() const {
  DAT_SRQ_PARAM param{};
  require(dat_srq_query(get(), DAT_SRQ_FIELD_ALL, &param), "dat_srq_query");
  return param;
}

Psp::Psp(const Ia& ia, const Evd& evd) {
  require(dat_psp_create_any(ia.get(), &qualifier_, evd.get(), DAT_PSP_CONSUMER_FLAG, out()), "dat_psp_create_any");
}

Side::Side(const Wire& wire, DAT_COUNT async_qlen)
    : ia(wire, async_qlen),
      pz(ia),
      recv(ia, DAT_EVD_DTO_FLAG),
      request(ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)),
      connect(ia, DAT_EVD_CONNECTION_FLAG),
      requests(ia, DAT_EVD_CR_FLAG) {}

DAT_CONN_QUAL Side::listen() {
  if (!psp) {
    psp.emplace(ia, requests);
  }
  return psp->qualifier();
}

EpEvds evds_of(const Side& side) {
  return {.recv = side.recv.get(), .request = side.request.get(), .connect = side.connect.get()};
}

DAT_EP_ATTR default_ep_attr() {
  DAT_EP_ATTR attr{};
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_message_size = 1 << 20;
  attr.max_rdma_size = 1 << 20;
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attr.max_recv_dtos = 64;
  attr.max_request_dtos = 64;
  attr.max_recv_iov = 4;
  attr.max_request_iov = 4;
  attr.max_rdma_read_in = 4;
  attr.max_rdma_read_out = 4;
  attr.srq_soft_hw = DAT_HW_DEFAULT;
  attr.max_rdma_read_iov = 4;
  attr.max_rdma_write_iov = 4;
  return attr;
}

DAT_EP_ATTR default_srq_ep_attr() {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = DAT_HW_DEFAULT;
  attr.srq_soft_hw = DAT_HW_DEFAULT;
  return attr;
}

Ep::Ep(const Ia& ia, const Pz& pz, const EpEvds& evds, const DAT_EP_ATTR& attr) {
  require(dat_ep_create(ia.get(), pz.get(), evds.recv, evds.request, evds.connect, &attr, out()), "dat_ep_create");
}

Ep::Ep(const Ia& ia, const Pz& pz, const EpEvds& evds, const Srq& srq, const DAT_EP_ATTR& attr) {
  require(dat_ep_create_with_srq(ia.get(), pz.get(), evds.recv, evds.request, evds.connect, srq.get(), &attr, out()),
          "dat_ep_create_with_srq");
}

Ep::Ep(const Side& side, const DAT_EP_ATTR& attr) : Ep(side.ia, side.pz, evds_of(side), attr) {}

Ep::Ep(const Side& side, const Srq& srq, const DAT_EP_ATTR& attr) : Ep(side.ia, side.pz, evds_of(side), srq, attr) {}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep) {
  DAT_EP_STATE state{};
  require(dat_ep_get_status(ep, &state, nullptr, nullptr), "dat_ep_get_status");
  return state;
}

DAT_EP_STATE Ep::state() const {
  return state_of(get());
}

DAT_EP_PARAM Ep::query() const {
  DAT_EP_PARAM param{};
  require(dat_ep_query(get(), DAT_EP_FIELD_ALL, &param), "dat_ep_query");
  return param;
}

namespace {

// Filled before main(), as patience() is computed, for the child of a fork.
sockaddr_in loopback_address = [] {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return in;
}();

}  // namespace

DAT_IA_ADDRESS_PTR loopback() {
  return reinterpret_cast<DAT_IA_ADDRESS_PTR>(&loopback_address);
}

namespace {

DAT_EVD_HANDLE connect_evd_of(DAT_EP_HANDLE ep) {
  DAT_EP_PARAM param{};
  require(dat_ep_query(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param), "dat_ep_query");
  return param.connect_evd_handle;
}

DAT_PVOID data_of(const std::vector<std::byte>& bytes) {
  return const_cast<std::byte*>(bytes.data());  // the calls take the data as const, the type does not say so
}

}  // namespace

namespace {

// Endpoints share connect EVDs, and the end of an earlier connection may still be on its way to one.
DAT_EVENT expect_established(DAT_EP_HANDLE ep, Caller caller) {
  for (;;) {
    const std::optional<DAT_EVENT> event = wait_event(connect_evd_of(ep));
    if (event && event->event_data.connect_event_data.ep_handle != ep) continue;
    if (event && event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) return *event;
    // Says what is wrong, as for any event.
    ADD_FAILURE() << caller.file << ":" << caller.line << ": no ESTABLISHED, but " << (event ? event->event_number : 0);
    throw std::runtime_error("the endpoint was not connected");
  }
}

}  // namespace

DAT_CONNECTION_EVENT_DATA connect_pair(Side& server, DAT_EP_HANDLE server_ep, DAT_EP_HANDLE client_ep,
                                       const PrivateData& data, Caller caller) {
  const auto timeout = std::chrono::duration_cast<std::chrono::microseconds>(patience()).count();
  require(dat_ep_connect(client_ep, loopback(), server.listen(), static_cast<DAT_TIMEOUT>(timeout),
                         static_cast<DAT_COUNT>(data.request.size()), data_of(data.request), DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT, caller);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, server_ep,
                        static_cast<DAT_COUNT>(data.reply.size()), data_of(data.reply)),
          "dat_cr_accept");
  const DAT_EVENT active = expect_established(client_ep, caller);
  expect_established(server_ep, caller);
  return active.event_data.connect_event_data;
}

Connection connect_pair(Side& server, Side& client, Caller caller) {
  Connection pair{.server = Ep(server), .client = Ep(client)};
  connect_pair(server, pair.server.get(), pair.client.get(), {}, caller);
  return pair;
}

Connection connect_pair(Side& server, const Srq& srq, Side& client, const DAT_EP_ATTR& server_attr, Caller caller) {
  Connection pair{.server = Ep(server, srq, server_attr), .client = Ep(client)};
  connect_pair(server, pair.server.get(), pair.client.get(), {}, caller);
  return pair;
}

}  // namespace anydat::test
