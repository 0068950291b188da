// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/lmr.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dapl/error.h"
#include "dapl/ia.h"
#include "dapl/pz.h"
#include "dapl/ranges.h"
#include "os/memory_map.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace anydat::dapl {

namespace {

constexpr unsigned kRelaxedOrderIgnored = 0x100;  // LMR-CREATE-23

constexpr std::uint32_t kRemote = nic::access::kRemoteRead | nic::access::kRemoteWrite;
static_assert(nic::access::kLocalRead == DAT_MEM_PRIV_LOCAL_READ_FLAG);
static_assert(nic::access::kRemoteRead == DAT_MEM_PRIV_REMOTE_READ_FLAG);
static_assert(nic::access::kLocalWrite == DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
static_assert(nic::access::kRemoteWrite == DAT_MEM_PRIV_REMOTE_WRITE_FLAG);

enum class Memory { usable, absent, read_only };

// LMR-CREATE-3: nobody shall meet absent memory. Populating tells, and first touches are slow on the data path; very
// large ranges are only checked for being mapped, since a sparse one may be larger than memory.
Memory inspect(DAT_VADDR address, DAT_VLEN length, bool written) {
  constexpr DAT_VLEN kPopulatedMax = DAT_VLEN{1} << 30;
  const auto page = static_cast<DAT_VADDR>(sysconf(_SC_PAGESIZE));
  const DAT_VADDR start = address / page * page;
  const DAT_VLEN size = (address + length - start + page - 1) / page * page;
  void* const pages = reinterpret_cast<void*>(start);
  if (msync(pages, size, MS_ASYNC) != 0 && errno == ENOMEM) return Memory::absent;
  if (!written || size > kPopulatedMax || madvise(pages, size, MADV_POPULATE_WRITE) == 0) return Memory::usable;
  if (errno == EFAULT || errno == ENOMEM) return Memory::absent;
  // EINVAL: not writable, or special memory, or a kernel that does not know the advice. Only in the first case does
  // populating for reading work.
  return madvise(pages, size, MADV_POPULATE_READ) == 0 ? Memory::read_only : Memory::usable;
}

}  // namespace

Lmr::Lmr(Ia& ia, Pz& pz, const Request& request, DAT_VADDR address, const nic::RegionKeys& keys)
    : Object(ia, kType), pz_(pz), request_(request), address_(address), keys_(keys) {
  pz_.use();
  if (request_.type == DAT_MEM_TYPE_SHARED_VIRTUAL) {
    // LMR-CREATE-14, LMR-QUERY-1: the caller's 40 bytes are read now, and queries show the copy.
    std::memcpy(shared_memory_id_.data(), request_.description.for_shared_memory.shared_memory_id,
                shared_memory_id_.size());
    request_.description.for_shared_memory.shared_memory_id =
        reinterpret_cast<DAT_LMR_COOKIE>(shared_memory_id_.data());
  }
}

DAT_RMR_CONTEXT Lmr::rmr_context() const {
  return (request_.rights & kRemote) != 0 ? keys_.remote : 0;
}

DAT_RETURN Lmr::check_range(const Ia& ia, DAT_VADDR address, DAT_VLEN length) {
  if (length == 0) return fail(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE, "dat_lmr_create: length is 0");
  if (address == 0) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_lmr_create: the address is NULL");
  if (length > ia.limits().max_lmr_block_size) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "dat_lmr_create: length {} exceeds max_lmr_block_size {}",
                length, ia.limits().max_lmr_block_size);
  }
  if (address > ia.limits().max_virtual_address || length - 1 > ia.limits().max_virtual_address - address) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
                "dat_lmr_create: {} bytes at {:#x} do not end below the highest address {:#x}", length, address,
                ia.limits().max_virtual_address);
  }
  return DAT_SUCCESS;
}

// Where the memory lies that the request describes. The length of a region over a region becomes the older one's.
DAT_RETURN Lmr::find_memory(Ia& ia, Request& request, DAT_VADDR& address) {
  switch (request.type) {
    case DAT_MEM_TYPE_SO_VIRTUAL:  // LMR-CREATE-23
      request.type = DAT_MEM_TYPE_VIRTUAL;
      [[fallthrough]];
    case DAT_MEM_TYPE_VIRTUAL:
      address = reinterpret_cast<DAT_VADDR>(request.description.for_va);
      return check_range(ia, address, request.length);
    case DAT_MEM_TYPE_LMR: {
      base::Guard guard(ia.engine());
      const Lmr* original = lookup<Lmr>(request.description.for_lmr_handle);
      if (!original || &original->ia() != &ia) {
        return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR, "dat_lmr_create: {} is no live LMR of this IA",
                    request.description.for_lmr_handle);
      }
      address = original->address_;
      request.length = original->request_.length;  // LMR-CREATE-11, LMR-QUERY-2
      return DAT_SUCCESS;
    }
    case DAT_MEM_TYPE_SHARED_VIRTUAL: {
      const DAT_SHARED_MEMORY& given = request.description.for_shared_memory;
      address = reinterpret_cast<DAT_VADDR>(given.virtual_address);
      if (const DAT_RETURN rc = check_range(ia, address, request.length)) return rc;
      if (!given.shared_memory_id) {
        return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_lmr_create: shared_memory_id is NULL");
      }
      // LMR-CREATE-15. Where the system does not tell, the program is taken at its word: no right depends on it.
      if (os::sharing_of(address, request.length) == os::Sharing::not_shared) {
        return fail(DAT_INVALID_STATE, DAT_NO_SUBTYPE,
                    "dat_lmr_create: the {} bytes at {:#x} are not all shared memory (MAP_SHARED, shmat)",
                    request.length, address);
      }
      return DAT_SUCCESS;
    }
    default:
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_lmr_create: {} is no memory type",
                  static_cast<unsigned>(request.type));
  }
}

DAT_RETURN Lmr::create(Ia& ia, Pz& pz, const Request& given, const Results& results) {
  Request request = given;
  if (!results.handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7, "dat_lmr_create: lmr_handle is NULL");
  request.rights = static_cast<DAT_MEM_PRIV_FLAGS>(request.rights & ~kRelaxedOrderIgnored);
  if ((request.rights & ~DAT_MEM_PRIV_ALL_FLAG) != 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, "dat_lmr_create: privileges {:#x} have bits outside {:#x}",
                static_cast<unsigned>(request.rights), static_cast<unsigned>(DAT_MEM_PRIV_ALL_FLAG));
  }
  DAT_VADDR address = 0;
  if (const DAT_RETURN rc = find_memory(ia, request, address)) return rc;
  const bool written = (request.rights & (nic::access::kLocalWrite | nic::access::kRemoteWrite)) != 0;
  switch (inspect(address, request.length, written)) {
    case Memory::usable:
      break;
    case Memory::absent:
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
                  "dat_lmr_create: not all of the {} bytes at {:#x} are mapped", request.length, address);
    case Memory::read_only:
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
                  "dat_lmr_create: write privileges are asked for, but the memory at {:#x} is read-only", address);
  }

  nic::RegionKeys keys;
  std::uint32_t rights = request.rights;
  if (ia.habits().sends_without_local_read) rights |= nic::access::kLocalRead;
  const nic::Status status = ia.nic().add_region({address, request.length, pz.zone(), rights}, keys);
  base::Guard guard(ia.engine());
  Lmr* lmr = status == nic::Status::ok ? ia.adopt(std::make_unique<Lmr>(ia, pz, request, address, keys)) : nullptr;
  if (!lmr) {
    if (status == nic::Status::ok) {
      ia.nic().remove_region(keys.local);
      pz.release();
    }
    return ia.out_of("dat_lmr_create", "memory regions", DAT_RESOURCE_MEMORY_REGION);
  }
  ia.note_lmr(keys.local, *lmr);
  *results.handle = lmr->handle();
  if (results.lmr_context) *results.lmr_context = keys.local;
  if (results.rmr_context) *results.rmr_context = lmr->rmr_context();
  if (results.registered_size) *results.registered_size = request.length;
  if (results.registered_address) *results.registered_address = address;
  return DAT_SUCCESS;
}

DAT_RETURN Lmr::sync(Ia& ia, const char* call, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  if (count > 0 && !segments) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: num_segments is {}, but local_segments is NULL", call,
                static_cast<std::uint64_t>(count));
  }
  for (DAT_VLEN i = 0; i < count; ++i) {
    const DAT_LMR_TRIPLET& segment = segments[i];
    if (segment.segment_length == 0) continue;  // LMR-SYNC-8
    const nic::RegionCheck check = ia.nic().regions().check(segment.lmr_context, segment.virtual_address,
                                                            segment.segment_length, nic::kAnyZone, 0);
    if (check != nic::RegionCheck::ok) {
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                  "{}: segment {}, {} bytes at {:#x}, does not lie in a live LMR with context {:#x}", call,
                  static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(segment.segment_length),
                  static_cast<std::uint64_t>(segment.virtual_address), segment.lmr_context);
    }
  }
  return DAT_SUCCESS;
}

DAT_RETURN Lmr::query(DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_lmr_query", mask, DAT_LMR_FIELD_ALL, param)) return rc;
  param->ia_handle = ia().handle();
  param->mem_type = request_.type;
  param->region_desc = request_.description;
  param->length = request_.length;
  param->pz_handle = pz_.handle();
  param->mem_priv = request_.rights;
  param->lmr_context = keys_.local;
  param->rmr_context = rmr_context();
  param->registered_size = request_.length;
  param->registered_address = address_;
  return DAT_SUCCESS;
}

std::optional<DAT_RETURN> Lmr::free() {
  if (bound_ > 0) {
    return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE, "dat_lmr_free: {} RMRs are bound to it", bound_);
  }
  ia().nic().remove_region(keys_.local);
  if (!ia().nic().quiesce(keys_.local)) return std::nullopt;
  ia().retire(*this);
  return DAT_SUCCESS;
}

void Lmr::shut_down() {
  ia().forget_lmr(keys_.local);
  ia().nic().remove_region(keys_.local);
  pz_.release();
}

}  // namespace anydat::dapl
