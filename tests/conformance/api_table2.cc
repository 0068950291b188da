// SPDX-License-Identifier: BSD-3-Clause
// What version 2.0 adds to the table of the whole API, and the calls that it has given more arguments.
#include <netinet/in.h>

#include <map>
#include <string>

#include "api_table.h"

#if DAT_VERSION_MAJOR == 2
#include <dat2/dat_ib_extensions.h>
#endif

namespace anydat::test {

#if DAT_VERSION_MAJOR == 1

std::vector<ApiCall> calls_of_version2() {
  return {};
}

#else

namespace {

using H = const Handles&;

constexpr HandleArgument kIa{DAT_HANDLE_TYPE_IA, &Household::ia, DAT_INVALID_HANDLE_IA};
constexpr HandleArgument kPz{DAT_HANDLE_TYPE_PZ, &Household::pz, DAT_INVALID_HANDLE_PZ};
constexpr HandleArgument kCno{DAT_HANDLE_TYPE_CNO, &Household::cno, DAT_INVALID_HANDLE_CNO};
constexpr HandleArgument kCrEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_INVALID_HANDLE_EVD_CR};
constexpr HandleArgument kEp{DAT_HANDLE_TYPE_EP, &Household::idle, DAT_INVALID_HANDLE_EP};
constexpr HandleArgument kConnectedEp{DAT_HANDLE_TYPE_EP, &Household::connected, DAT_INVALID_HANDLE_EP};
constexpr HandleArgument kCounted{DAT_HANDLE_TYPE_EP, &Household::idle, DAT_NO_SUBTYPE};
constexpr HandleArgument kCountedIa{DAT_HANDLE_TYPE_IA, &Household::ia, DAT_NO_SUBTYPE};
constexpr HandleArgument kCountedEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_NO_SUBTYPE};
constexpr HandleArgument kLmr{DAT_HANDLE_TYPE_LMR, &Household::lmr, DAT_INVALID_HANDLE_LMR};
constexpr HandleArgument kRmr{DAT_HANDLE_TYPE_RMR, &Household::rmr, DAT_INVALID_HANDLE_RMR};
constexpr HandleArgument kCr{DAT_HANDLE_TYPE_CR, &Household::cr, DAT_INVALID_HANDLE_CR};
constexpr HandleArgument kCsp{DAT_HANDLE_TYPE_CSP, &Household::csp, DAT_INVALID_HANDLE_CSP};

DAT_RETURN make_csp(H h) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  DAT_COMM comm{AF_INET, SOCK_STREAM, 0};
  DAT_CSP_HANDLE made = DAT_HANDLE_NULL;
  return dat_csp_create(h[0], &comm, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), h[1], &made);
}

DAT_RETURN common_connect(const Household& home, H h) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<in_port_t>(home.unused_qualifier));
  return dat_ep_common_connect(h[0], reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), DAT_TIMEOUT_INFINITE, 0, nullptr);
}

DAT_RETURN bind_window(const Household& home, H h) {
  const DAT_LMR_TRIPLET segment = home.segment();
  DAT_RMR_CONTEXT context = 0;
  return dat_rmr_bind(h[0], h[1], &segment, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, h[2], {},
                      DAT_COMPLETION_DEFAULT_FLAG, &context);
}

DAT_RETURN post_send(const Household& home, H h, DAT_BOOLEAN invalidate) {
  DAT_LMR_TRIPLET segment = home.segment();
  return dat_ep_post_send_with_invalidate(h[0], 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG, invalidate,
                                          home.remote_segment().rmr_context);
}

// The operations of the extension that are not posts.
DAT_RETURN query_counters(H h) {
  DAT_UINT64 values[DCNT_IA_ALL_COUNTERS];
  return dat_ib_query_counters(h[0], 0, values, 1);
}

// Into a window that the call itself binds, where it is to succeed.
DAT_RETURN read_to_rmr(const Household& home, H h) {
  const DAT_LMR_TRIPLET segment = home.segment();
  const DAT_RMR_TRIPLET remote = home.remote_segment();
  DAT_RMR_TRIPLET window = remote;
  window.virtual_address = segment.virtual_address;
  window.segment_length = segment.segment_length;
  if (h[0] == home.connected) {
    const DAT_RETURN rc = dat_rmr_bind(home.rmr, home.lmr, &segment, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
                                       h[0], {}, DAT_COMPLETION_DEFAULT_FLAG, &window.rmr_context);
    if (rc != DAT_SUCCESS) return rc;
  }
  return dat_ep_post_rdma_read_to_rmr(h[0], &window, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG);
}

}  // namespace

std::vector<ApiCall> calls_of_version2() {
  return {
      {"dat_csp_create", {kIa, kCrEvd}, [](Household&, H h) { return make_csp(h); }},
      {"dat_csp_query",
       {kCsp},
       [](Household&, H h) {
         DAT_CSP_PARAM param{};
         return dat_csp_query(h[0], DAT_CSP_FIELD_ALL, &param);
       }},
      {"dat_csp_free", {kCsp}, [](Household&, H h) { return dat_csp_free(h[0]); }},
      {"dat_ep_common_connect", {kEp}, [](Household& home, H h) { return common_connect(home, h); }},
      {"dat_rmr_create_for_ep",
       {kPz},
       [](Household&, H h) {
         DAT_RMR_HANDLE made = DAT_HANDLE_NULL;
         return dat_rmr_create_for_ep(h[0], &made);
       },
       true},
      {"dat_rmr_bind with its region",
       {kRmr, kLmr, kConnectedEp},
       [](Household& home, H h) { return bind_window(home, h); }},
      {"dat_ep_post_send_with_invalidate",
       {kConnectedEp},
       [](Household& home, H h) { return post_send(home, h, DAT_FALSE); }},
      {"dat_ep_post_send_with_invalidate that does",
       {kConnectedEp},
       [](Household& home, H h) { return post_send(home, h, DAT_TRUE); },
       true},
      {"dat_ep_post_rdma_read_to_rmr", {kConnectedEp}, [](Household& home, H h) { return read_to_rmr(home, h); }, true},
      {"dat_extension_op query_counters of an IA", {kCountedIa}, [](Household&, H h) { return query_counters(h); }},
      {"dat_extension_op query_counters of an EP", {kCounted}, [](Household&, H h) { return query_counters(h); }},
      {"dat_extension_op query_counters of an EVD", {kCountedEvd}, [](Household&, H h) { return query_counters(h); }},
      {"dat_extension_op start_counter", {kIa}, [](Household&, H h) { return dat_ib_start_counter(h[0], DCNT_IA_CM); }},
      {"dat_extension_op stop_counter", {kIa}, [](Household&, H h) { return dat_ib_stop_counter(h[0], DCNT_IA_CM); }},
      {"dat_extension_op print_counters",
       {kCounted},
       [](Household&, H h) {
         const std::map<std::string, std::string> variables{{"DAT_DBG_DEST", "2"}};
         const ScopedEnv to_the_log(variables);
         return dat_ib_print_counters(h[0], DCNT_EP_CONNECT, 0);
       }},
      {"dat_cno_fd_create",
       {kIa},
       [](Household&, H h) {
         DAT_FD fd = -1;
         DAT_CNO_HANDLE made = DAT_HANDLE_NULL;
         return dat_cno_fd_create(h[0], &fd, &made);
       }},
      {"dat_cno_trigger",
       {kCno},
       [](Household&, H h) {
         DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
         return dat_cno_trigger(h[0], &evd);
       }},
      {"dat_cr_reject with private data",
       {kCr},
       [](Household&, H h) {
         char data[48] = "no";
         return dat_cr_reject(h[0], sizeof data, data);
       }},
  };
}

#endif

}  // namespace anydat::test
