// SPDX-License-Identifier: BSD-3-Clause
#include "rmr_fixture.h"

namespace anydat::test {

Rmr::Rmr(const Pz& pz) {
  require(dat_rmr_create(pz.get(), out()), "dat_rmr_create");
}

DAT_RMR_PARAM Rmr::query() const {
  DAT_RMR_PARAM param{};
  require(dat_rmr_query(get(), DAT_RMR_FIELD_ALL, &param), "dat_rmr_query");
  return param;
}

DAT_RMR_COOKIE rmr_cookie(DAT_UINT64 value) {
  DAT_RMR_COOKIE result{};
  result.as_64 = value;
  return result;
}

DAT_RETURN try_bind(const Rmr& rmr, DAT_LMR_TRIPLET segment, DAT_MEM_PRIV_FLAGS privileges, const Ep& ep,
                    DAT_RMR_CONTEXT* context, DAT_UINT64 number, DAT_COMPLETION_FLAGS flags) {
  return dat_rmr_bind(rmr.get(), &segment, privileges, ep.get(), rmr_cookie(number), flags, context);
}

DAT_RMR_BIND_COMPLETION_EVENT_DATA expect_bind(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status, Caller caller) {
  const auto data = expect_event(evd, DAT_RMR_BIND_COMPLETION_EVENT, caller).event_data.rmr_completion_event_data;
  if (data.status != status) {
    ADD_FAILURE_AT(caller.file, caller.line)
        << "the bind completed with status " << data.status << ", expected " << status;
  }
  return data;
}

DAT_RMR_CONTEXT RmrTest::bind(const Pair& pair, const Rmr& rmr, DAT_LMR_TRIPLET segment, DAT_MEM_PRIV_FLAGS privileges,
                              Caller caller) {
  DAT_RMR_CONTEXT context = 0;
  require(try_bind(rmr, segment, privileges, pair.server, &context), "dat_rmr_bind");
  expect_bind(pair.server_evds.request.get(), DAT_DTO_SUCCESS, caller);
  return context;
}

void RmrTest::unbind(const Pair& pair, const Rmr& rmr, Caller caller) {
  DAT_RMR_CONTEXT ignored = 0;
  require(try_bind(rmr, DAT_LMR_TRIPLET{}, DAT_MEM_PRIV_NONE_FLAG, pair.server, &ignored), "dat_rmr_bind");
  expect_bind(pair.server_evds.request.get(), DAT_DTO_SUCCESS, caller);
}

void RmrTest::expect_granted(Rdma kind, DAT_RMR_CONTEXT context, const std::byte* address, std::size_t length,
                             Caller caller) {
  const Pair pair = make_connected_pair();
  require(rdma(kind, pair.client, local.triplet(0, length), remote_triplet(context, address, length), 1), "RDMA");
  expect_completion(pair.client_evds.request.get(), DAT_DTO_SUCCESS, caller);
}

void RmrTest::expect_refused(Rdma kind, DAT_RMR_CONTEXT context, const std::byte* address, std::size_t length,
                             Caller caller) {
  const Pair pair = make_connected_pair();
  expect_remote_refusal(pair, kind,
                        rdma(kind, pair.client, local.triplet(0, length), remote_triplet(context, address, length), 1),
                        caller);
}

}  // namespace anydat::test
