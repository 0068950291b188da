// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/lmr.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dapl/ia.h"
#include "dapl/pz.h"
#include "dapl/segments.h"
#include "os/mapping.h"
#include "os/memory_map.h"
#include "os/own_memory.h"

namespace anydat::dapl {

namespace {

constexpr std::uint32_t kRemote = nic::access::kRemoteRead | nic::access::kRemoteWrite | nic::access::kRemoteAtomic;

enum class Memory { usable, absent, read_only };

// LMR-CREATE-3: no transfer shall meet absent memory. Populating tells, and first touches are slow on the data path; a
// page that takes long to come is waited for here, by the thread that registers it. Very large ranges are only checked
// for being mapped, since a sparse one may be larger than memory.
Memory inspect(std::uint64_t address, std::uint64_t length, bool written) {
  constexpr std::uint64_t kPopulatedMax = std::uint64_t{1} << 30;
  const std::uint64_t page = os::page_bytes();
  const std::uint64_t start = address / page * page;
  const std::uint64_t size = (address + length - start + page - 1) / page * page;
  void* const pages = reinterpret_cast<void*>(start);
  if (!os::is_mapped(pages, size)) return Memory::absent;
  if (size > kPopulatedMax) return Memory::usable;
  if (!written) return os::populate(pages, size, false) != EFAULT ? Memory::usable : Memory::absent;
  const int error = os::populate(pages, size, true);
  if (error == 0) return Memory::usable;
  if (error == EFAULT || error == ENOMEM) return Memory::absent;
  // EINVAL: not writable, or special memory, or a kernel that does not know the advice. Only in the first case does
  // populating for reading work.
  return os::populate(pages, size, false) == 0 ? Memory::read_only : Memory::usable;
}

// Whether the memory that has been found can be had with the rights.
Error check_memory(const Lmr::Request& request, std::uint64_t address) {
  if (request.zero_based && (request.rights & nic::access::kRemoteAtomic) != 0 && address % kAtomicWordBytes != 0) {
    return fail(
        Argument::mem_privileges,
        "dat_lmr_create: REMOTE_ATOMIC is asked for, but the zero-based region begins at {:#x}, no multiple of {}",
        address, kAtomicWordBytes);
  }
  const bool written =
      (request.rights & (nic::access::kLocalWrite | nic::access::kRemoteWrite | nic::access::kRemoteAtomic)) != 0;
  switch (inspect(address, request.length, written)) {
    case Memory::usable:
      break;
    case Memory::absent:
      return fail(Argument::region_description, "dat_lmr_create: not all of the {} bytes at {:#x} are mapped",
                  request.length, address);
    case Memory::read_only:
      return fail(Argument::mem_privileges,
                  "dat_lmr_create: write privileges are asked for, but the memory at {:#x} is read-only", address);
  }
  return kSuccess;
}

}  // namespace

Lmr::Lmr(Ia& ia, Pz& pz, const Request& request, std::uint64_t address)
    : Object(ia, kType), pz_(pz), request_(request), address_(address) {
  pz_.use();
  if (request_.type == MemoryType::shared_virtual) {
    // LMR-CREATE-14, LMR-QUERY-1: the caller's 40 bytes are read now, and queries show the copy.
    std::memcpy(shared_memory_id_.data(), request_.description.shared_memory_id, shared_memory_id_.size());
    request_.description.shared_memory_id = shared_memory_id_.data();
  }
}

bool Lmr::open_to_peers() const {
  return (request_.rights & kRemote) != 0;
}

std::uint32_t Lmr::rmr_context() const {
  return open_to_peers() ? keys_.remote : 0;
}

Error Lmr::check_range(const Ia& ia, std::uint64_t address, std::uint64_t length) {
  if (length == 0) return fail(Code::length_error, Detail::none, "dat_lmr_create: length is 0");
  if (address == 0) return fail(Argument::region_description, "dat_lmr_create: the address is NULL");
  if (length > ia.limits().max_lmr_block_size) {
    return fail(Argument::length, "dat_lmr_create: length {} exceeds max_lmr_block_size {}", length,
                ia.limits().max_lmr_block_size);
  }
  if (address > ia.limits().max_virtual_address || length - 1 > ia.limits().max_virtual_address - address) {
    return fail(Argument::region_description,
                "dat_lmr_create: {} bytes at {:#x} do not end below the highest address {:#x}", length, address,
                ia.limits().max_virtual_address);
  }
  return kSuccess;
}

// Where the memory lies that the request describes. The length of a region over a region becomes the older one's.
Error Lmr::find_memory(Ia& ia, Request& request, std::uint64_t& address) {
  switch (request.type) {
    case MemoryType::so_virtual:  // LMR-CREATE-23
      request.type = MemoryType::virtual_memory;
      [[fallthrough]];
    case MemoryType::virtual_memory:
      address = reinterpret_cast<std::uint64_t>(request.description.address);
      return check_range(ia, address, request.length);
    case MemoryType::lmr: {
      os::Guard guard(ia.engine());
      const Lmr* original = lookup<Lmr>(request.description.lmr);
      if (!original || &original->ia() != &ia) {
        return fail(Code::invalid_handle, Detail::handle_lmr, "dat_lmr_create: {} is no live LMR of this IA",
                    request.description.lmr);
      }
      address = original->address_;
      request.length = original->request_.length;  // LMR-CREATE-11, LMR-QUERY-2
      return kSuccess;
    }
    case MemoryType::shared_virtual: {
      address = reinterpret_cast<std::uint64_t>(request.description.address);
      if (const Error error = check_range(ia, address, request.length)) return error;
      if (!request.description.shared_memory_id) {
        return fail(Argument::region_description, "dat_lmr_create: shared_memory_id is NULL");
      }
      // LMR-CREATE-15. Where the system does not tell, the program is taken at its word: no right depends on it.
      if (os::sharing_of(address, request.length) == os::Sharing::not_shared) {
        return fail(Code::invalid_state, Detail::none,
                    "dat_lmr_create: the {} bytes at {:#x} are not all shared memory (MAP_SHARED, shmat)",
                    request.length, address);
      }
      return kSuccess;
    }
    default:
      return fail(Argument::mem_type, "dat_lmr_create: {} is no memory type", static_cast<unsigned>(request.type));
  }
}

Error Lmr::create(Ia& ia, Pz& pz, const Request& given, const Results& results) {
  Request request = given;
  if (!results.handle) return fail(Argument::lmr_handle, "dat_lmr_create: lmr_handle is NULL");
  request.rights = request.rights & ~kRelaxedOrderDisabled;
  if ((request.rights & ~ia.description().privileges()) != 0) {
    return fail(Argument::mem_privileges, "dat_lmr_create: privileges {:#x} have bits outside {:#x}",
                static_cast<unsigned>(request.rights), static_cast<unsigned>(ia.description().privileges()));
  }
  std::uint64_t address = 0;
  if (const Error error = find_memory(ia, request, address)) return error;
  if (const Error error = check_memory(request, address)) return error;

  // The object is made, and in its list, before the memory is registered: afterwards nothing may fail, or it would stay
  // registered.
  std::unique_ptr<Lmr> made;
  {
    os::Guard guard(ia.engine());
    if (!pz.alive()) return freed_meanwhile("dat_lmr_create", "protection zone", Detail::handle_pz);
    made = std::make_unique<Lmr>(ia, pz, request, address);
  }
  std::uint32_t rights = request.rights | (request.zero_based ? nic::access::kZeroBased : 0);
  if (ia.habits().sends_without_local_read) rights |= nic::access::kLocalRead;
  nic::RegionKeys& keys = made->keys_;
  nic::Status status = nic::Status::no_memory;
  try {
    status = ia.nic().add_region({address, request.length, pz.zone(), rights}, keys);
  } catch (const std::bad_alloc&) {
    // As without room in the table.
  }
  os::Guard guard(ia.engine());
  const std::uint32_t key = keys.local;
  Lmr* lmr = nullptr;
  if (status == nic::Status::ok) {
    try {
      ia.note_lmr(key, *made);
      lmr = ia.adopt(std::move(made));
    } catch (const std::bad_alloc&) {
      // As at the adapter's limit.
    }
    if (!lmr) {
      ia.forget_lmr(key);
      ia.nic().remove_region(key);
    }
  }
  if (!lmr) {
    pz.release();
    return ia.out_of("dat_lmr_create", "memory regions", Detail::memory_region);
  }
  *results.handle = lmr->handle();
  if (results.lmr_context) *results.lmr_context = key;
  if (results.rmr_context) *results.rmr_context = lmr->rmr_context();
  if (results.registered_size) *results.registered_size = request.length;
  if (results.registered_address) *results.registered_address = request.zero_based ? 0 : address;  // D2-LMR-3
  return kSuccess;
}

Error Lmr::sync(const Ia& ia, const char* call, std::uint64_t index, const Segment& segment) {
  if (segment.length == 0) return kSuccess;  // LMR-SYNC-8
  std::uint64_t where = 0;
  const nic::RegionCheck check = locate(ia.nic().regions(), segment, nic::kAnyZone, 0, where);
  if (check == nic::RegionCheck::ok) return kSuccess;
  return fail(Argument::local_segments,
              "{}: segment {}, {} bytes at {:#x}, does not lie in a live LMR with context {:#x}", call, index,
              segment.length, segment.address, segment.key);
}

LmrParameters Lmr::query() const {
  return {ia().handle(),      request_.type, request_.description, request_.length, pz_.handle(),
          request_.rights,    keys_.local,   rmr_context(),        request_.length, request_.zero_based ? 0 : address_,
          request_.zero_based};
}

std::optional<Error> Lmr::free() {
  if (bound_ > 0) {
    return fail(Code::invalid_state, Detail::lmr_in_use, "dat_lmr_free: {} RMRs are bound to it", bound_);
  }
  ia().nic().remove_region(keys_.local);
  if (!ia().nic().quiesce(keys_.local, open_to_peers())) return std::nullopt;
  ia().retire(*this);
  return kSuccess;
}

void Lmr::shut_down() {
  ia().forget_lmr(keys_.local);
  ia().nic().remove_region(keys_.local);
  pz_.release();
}

}  // namespace anydat::dapl
