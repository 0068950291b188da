// SPDX-License-Identifier: BSD-3-Clause
// What the tests of RDMA and of memory windows have in common: a client that reads and writes memory of a server.
#pragma once

#include <dat/udat.h>

#include "ep_fixture.h"

namespace anydat::test {

DAT_RETURN rdma_read(const Ep& ep, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, DAT_UINT64 number,
                     DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);
DAT_RETURN rdma_write(const Ep& ep, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, DAT_UINT64 number,
                      DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);

enum class Rdma { kRead, kWrite };
inline constexpr Rdma kBothRdma[] = {Rdma::kRead, Rdma::kWrite};
const char* rdma_name(Rdma kind);
DAT_RETURN rdma(Rdma kind, const Ep& ep, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, DAT_UINT64 number,
                DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);

// A triplet for what a window or a region with that context covers.
DAT_RMR_TRIPLET remote_triplet(DAT_RMR_CONTEXT context, const void* address, std::size_t length);

class RdmaTest : public EpTest {
 protected:
  static constexpr std::size_t kSize = 64 * 1024;

  // The RDMA just posted by the client, with the result `rc`, is refused by the target (PROT-5, PROT-6): either at
  // once, if the library could tell, and the connection stands; or the DTO fails with ERR_REMOTE_ACCESS and the
  // connection breaks at both ends. A Write may also have succeeded before the news came (STAT-14).
  void expect_remote_refusal(const Pair& pair, Rdma kind, DAT_RETURN rc, Caller caller = Caller::here());

  // A message from client to server whose receive has been reaped: what the client wrote before is visible (DTO-43).
  void pass_message(const Pair& pair, Caller caller = Caller::here());

  Lmr target{server.ia, server.pz, kSize};
  Lmr local{client.ia, client.pz, kSize};
};

}  // namespace anydat::test
