// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Pz;

// What an atomic operation works on: so many bytes, at a multiple of so many (D2-ATOM-2). The poster knows what its
// peer calls the word, and the peer where it is. For both to mean the same, what is zero-based and open to such
// operations begins with a word (D2-ATOM-10).
inline constexpr std::uint64_t kAtomicWordBytes = 8;

// A local memory region. Its LMR context is the key of the NIC's region table, which posts check without asking us; its
// RMR context is what peers name the memory by.
class Lmr final : public Object {
 public:
  static constexpr HandleType kType = HandleType::lmr;

  struct Request {
    MemoryType type;
    MemoryDescription description;
    std::uint64_t length;
    Privileges rights;
    bool zero_based = false;  // D2-LMR-2
  };
  struct Results {
    Handle* handle;
    std::uint32_t* lmr_context;
    std::uint32_t* rmr_context;
    std::uint64_t* registered_size;
    std::uint64_t* registered_address;
  };

  Lmr(Ia& ia, Pz& pz, const Request& request, std::uint64_t address);

  static Error create(Ia& ia, Pz& pz, const Request& request, const Results& results);
  // Both calls dat_lmr_sync_rdma_read and _write, for one segment: memory is coherent, so it is checked, and that is
  // all.
  static Error sync(const Ia& ia, const char* call, std::uint64_t index, const Segment& segment);
  LmrParameters query() const;
  // With the engine held. Neither a request nor a peer touches the memory through the region afterwards (LMR-FREE-8).
  // Nothing: a peer is in the middle of using it; ask again, with the engine released in between.
  std::optional<Error> free();
  bool open_to_peers() const;  // has rights for them
  std::uint32_t rights() const { return request_.rights; }
  // Engine held, as for the next two: an RMR is bound to it.
  void bind() { ++bound_; }
  void unbind() { --bound_; }
  void shut_down();

 private:
  static Error find_memory(Ia& ia, Request& request, std::uint64_t& address);
  static Error check_range(const Ia& ia, std::uint64_t address, std::uint64_t length);
  std::uint32_t rmr_context() const;

  Pz& pz_;
  Request request_;
  std::array<char, kSharedMemoryIdBytes> shared_memory_id_{};  // of type SHARED_VIRTUAL
  const std::uint64_t address_;
  nic::RegionKeys keys_;     // fixed before it has a handle
  std::uint32_t bound_ = 0;  // RMRs bound to it; with the engine
};

}  // namespace anydat::dapl
