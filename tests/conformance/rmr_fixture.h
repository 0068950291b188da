// SPDX-License-Identifier: BSD-3-Clause
// Memory windows of a server, bound on its end of a connection and used by the client at the other.
#pragma once

#include <dat/udat.h>

#include "rdma_fixture.h"

namespace anydat::test {

inline constexpr auto kRemoteRead = DAT_MEM_PRIV_REMOTE_READ_FLAG;
inline constexpr auto kRemoteWrite = DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
inline constexpr auto kRemoteBoth =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);

class Rmr : public Owner<dat_rmr_free> {
 public:
  explicit Rmr(const Pz& pz);
  DAT_RMR_PARAM query() const;
};

DAT_RMR_COOKIE rmr_cookie(DAT_UINT64 value);

// A bind, with nothing waited for.
DAT_RETURN try_bind(const Rmr& rmr, DAT_LMR_TRIPLET segment, DAT_MEM_PRIV_FLAGS privileges, const Ep& ep,
                    DAT_RMR_CONTEXT* context, DAT_UINT64 number = 1,
                    DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);

// The next event of `evd` as a bind completion with that status.
DAT_RMR_BIND_COMPLETION_EVENT_DATA expect_bind(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS,
                                               Caller caller = Caller::here());

class RmrTest : public RdmaTest {
 protected:
  // Binds at the server's end and waits until it is done. Returns the context.
  DAT_RMR_CONTEXT bind(const Pair& pair, const Rmr& rmr, DAT_LMR_TRIPLET segment,
                       DAT_MEM_PRIV_FLAGS privileges = kRemoteBoth, Caller caller = Caller::here());
  void unbind(const Pair& pair, const Rmr& rmr, Caller caller = Caller::here());

  // RDMA of `length` bytes over a connection of its own.
  void expect_granted(Rdma kind, DAT_RMR_CONTEXT context, const std::byte* address, std::size_t length,
                      Caller caller = Caller::here());
  void expect_refused(Rdma kind, DAT_RMR_CONTEXT context, const std::byte* address, std::size_t length,
                      Caller caller = Caller::here());

  // Memory that no peer reaches but through a window.
  static constexpr std::size_t kMemory = 4096;
  Lmr memory{server.ia, server.pz, kMemory,
             static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)};
};

}  // namespace anydat::test
