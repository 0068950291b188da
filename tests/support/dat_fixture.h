// SPDX-License-Identifier: BSD-3-Clause
// A small toolkit for tests of the public API: DAT objects with owners, two sides of a connection, and connecting them.
//
// Creation throws on failure, because a test can only end there; destruction frees, and a refused free is a failure of
// the test. Tests that want a call to fail make the call themselves with `.get()`.
#pragma once

#include <dat/udat.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "support/dat_events.h"
#include "support/dat_matchers.h"
#include "support/patience.h"
#include "support/wire.h"

namespace anydat::test {

// Throws with `what` and the code in words unless `rc` is DAT_SUCCESS.
void require(DAT_RETURN rc, std::string_view what);

// Reports a refused free.
void note_failed_free(DAT_RETURN rc);

// A DAT handle that is freed with its owner.
template <auto kFree>
class Owner {
 public:
  Owner() = default;
  explicit Owner(DAT_HANDLE handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(other.release()) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.release();
    }
    return *this;
  }
  ~Owner() { reset(); }

  DAT_HANDLE get() const { return handle_; }

  // Gives the handle up; this object does not free it any more.
  DAT_HANDLE release() { return std::exchange(handle_, DAT_HANDLE_NULL); }

  // Frees now. The handle stays owned if the free is refused.
  [[nodiscard]] DAT_RETURN free() {
    const DAT_RETURN rc = kFree(handle_);
    if (rc == DAT_SUCCESS) {
      handle_ = DAT_HANDLE_NULL;
    }
    return rc;
  }

  // Frees now, if there is something to free; a refusal fails the test.
  void reset() {
    if (handle_ != DAT_HANDLE_NULL) {
      note_failed_free(kFree(handle_));
      handle_ = DAT_HANDLE_NULL;
    }
  }

 protected:
  DAT_HANDLE* out() { return &handle_; }

 private:
  DAT_HANDLE handle_ = DAT_HANDLE_NULL;
};

// An open IA with the async EVD that came with it. Closed gracefully: what a test leaves behind fails it (INV-8).
class Ia {
 public:
  explicit Ia(const Wire& wire, DAT_COUNT async_qlen = 1024);
  Ia(Ia&& other) noexcept;
  Ia& operator=(Ia&&) = delete;
  ~Ia();

  DAT_IA_HANDLE get() const { return handle_; }
  DAT_EVD_HANDLE async_evd() const { return async_evd_; }
  DAT_IA_ATTR attributes() const;
  DAT_PROVIDER_ATTR provider() const;

  // Closes now; the object is then empty.
  [[nodiscard]] DAT_RETURN close(DAT_CLOSE_FLAGS flags);

 private:
  DAT_IA_HANDLE handle_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd_ = DAT_HANDLE_NULL;
};

class Pz : public Owner<dat_pz_free> {
 public:
  explicit Pz(const Ia& ia);
};

class Evd : public Owner<dat_evd_free> {
 public:
  Evd(const Ia& ia, DAT_EVD_FLAGS flags, DAT_COUNT qlen = 1024, DAT_CNO_HANDLE cno = DAT_HANDLE_NULL);
  DAT_COUNT qlen() const;
};

// Registered memory: its own, or the caller's.
class Lmr : public Owner<dat_lmr_free> {
 public:
  Lmr(const Ia& ia, const Pz& pz, std::size_t bytes, DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_ALL_FLAG);
  Lmr(const Ia& ia, const Pz& pz, std::span<std::byte> memory, DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_ALL_FLAG);
  Lmr(Lmr&&) noexcept = default;
  Lmr& operator=(Lmr&&) noexcept = default;
  ~Lmr() { reset(); }  // while the memory is there

  std::span<std::byte> bytes() const { return memory_; }
  DAT_LMR_CONTEXT context() const { return context_; }
  DAT_RMR_CONTEXT rmr_context() const { return rmr_context_; }

  DAT_LMR_TRIPLET triplet() const { return triplet(0, memory_.size()); }
  DAT_LMR_TRIPLET triplet(std::size_t offset, std::size_t length) const;
  DAT_RMR_TRIPLET remote(std::size_t offset, std::size_t length) const;

 private:
  void register_memory(const Ia& ia, const Pz& pz, DAT_MEM_PRIV_FLAGS privileges);

  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
  DAT_LMR_CONTEXT context_ = 0;
  DAT_RMR_CONTEXT rmr_context_ = 0;
};

class Srq : public Owner<dat_srq_free> {
 public:
  Srq(const Ia& ia, const Pz& pz, DAT_COUNT max_recv_dtos, DAT_COUNT max_recv_iov = 4,
      DAT_COUNT low_watermark = DAT_SRQ_LW_DEFAULT);

  DAT_SRQ_PARAM query() const;
  DAT_COUNT size() const { return query().max_recv_dtos; }
  DAT_COUNT available() const { return query().available_dto_count; }
  DAT_COUNT outstanding() const { return query().outstanding_dto_count; }
};

// A Public Service Point on a qualifier of the library's choice.
class Psp : public Owner<dat_psp_free> {
 public:
  Psp(const Ia& ia, const Evd& evd);
  DAT_CONN_QUAL qualifier() const { return qualifier_; }

 private:
  DAT_CONN_QUAL qualifier_ = 0;
};

// What an application needs before it has endpoints: an IA, a zone, and an EVD for each kind of event.
struct Side {
  explicit Side(const Wire& wire, DAT_COUNT async_qlen = 1024);

  // The qualifier on which this side accepts; the service point is made at the first call and delivers to `requests`.
  DAT_CONN_QUAL listen();

  Ia ia;
  Pz pz;
  Evd recv;      // receive completions
  Evd request;   // completions of sends, RDMA and binds
  Evd connect;   // connection events
  Evd requests;  // arriving connection requests
  std::optional<Psp> psp;
};

struct EpEvds {
  DAT_EVD_HANDLE recv;
  DAT_EVD_HANDLE request;
  DAT_EVD_HANDLE connect;
};

EpEvds evds_of(const Side& side);

// Attributes that any wire accepts and most tests need: 1 MiB messages, 64 DTOs a direction, 4 segments.
DAT_EP_ATTR default_ep_attr();
// Any bits, also those that are no flag.
inline DAT_COMPLETION_FLAGS flags_of(int bits) {
  return static_cast<DAT_COMPLETION_FLAGS>(bits);
}
// The same for an SRQ endpoint: both watermarks infinite.
DAT_EP_ATTR default_srq_ep_attr();

class Ep : public Owner<dat_ep_free> {
 public:
  Ep() = default;
  Ep(const Ia& ia, const Pz& pz, const EpEvds& evds, const DAT_EP_ATTR& attr);
  Ep(const Ia& ia, const Pz& pz, const EpEvds& evds, const Srq& srq, const DAT_EP_ATTR& attr);

  // With the zone and EVDs of the side.
  explicit Ep(const Side& side, const DAT_EP_ATTR& attr = default_ep_attr());
  Ep(const Side& side, const Srq& srq, const DAT_EP_ATTR& attr = default_srq_ep_attr());

  DAT_EP_STATE state() const;
  DAT_EP_PARAM query() const;
};

DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

// The loopback address as dat_ep_connect takes it; it lives for ever.
DAT_IA_ADDRESS_PTR loopback();

struct PrivateData {
  std::vector<std::byte> request;  // sent with the connect
  std::vector<std::byte> reply;    // sent with the accept
};

// Connects `client_ep` to `server_ep` through the service point of `server`, and reaps the three events: the request
// and one ESTABLISHED on each side, whose connect EVDs must be otherwise silent meanwhile. Returns the client's event.
// Throws if any step fails.
DAT_CONNECTION_EVENT_DATA connect_pair(Side& server, DAT_EP_HANDLE server_ep, DAT_EP_HANDLE client_ep,
                                       const PrivateData& data = {}, Caller caller = Caller::here());

// Two connected endpoints.
struct Connection {
  Ep server;
  Ep client;
};

// Plain endpoints at both sides.
Connection connect_pair(Side& server, Side& client, Caller caller = Caller::here());
// An SRQ endpoint at the server, a plain one at the client.
Connection connect_pair(Side& server, const Srq& srq, Side& client,
                        const DAT_EP_ATTR& server_attr = default_srq_ep_attr(), Caller caller = Caller::here());

}  // namespace anydat::test
