// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/device.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "env/log.h"
#include "os/cancel.h"
#include "os/descriptor.h"
#include "os/lack.h"
#include "os/named_file.h"

namespace anydat::nic::verbs {

namespace {

Status status_of(int error) {
  if (error == EACCES || error == EPERM) return Status::denied;
  return os::is_lack(error) ? Status::no_memory : Status::failed;
}

// In the words of OpenFabrics' Providers.
const char* state_name(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    default:
      return "UNKNOWN";
  }
}

// Empty, with one sentence, if it cannot be opened.
Context open_context(const std::string& name, Status& status, std::string& why) {
  int count = 0;
  ibv_device** list = nullptr;
  {
    const os::ForkHeldOff held_off;  // libibverbs has a lock there, which the child could never take
    list = ibv_get_device_list(&count);
  }
  if (!list) {
    status = status_of(errno);
    why = fmt::format("the RDMA devices cannot be listed: {}", std::strerror(errno));
    return {};
  }
  ibv_device** const found =
      std::find_if(list, list + count, [&](ibv_device* device) { return name == ibv_get_device_name(device); });
  Context context;
  if (found == list + count) {
    status = Status::failed;
    why = fmt::format("the RDMA device {} has no driver in rdma-core here, or its files in /dev/infiniband are missing",
                      name);
  } else if (context = Context::of([&] { return ibv_open_device(*found); }); !context) {
    // The library tries several ways and tells of the last one only.
    const std::string file = fmt::format("/dev/infiniband/{}", (*found)->dev_name);
    const int refused = os::access_error(file.c_str());
    const int error = refused != 0 ? refused : EIO;
    status = status_of(error);
    why = fmt::format("the RDMA device {} cannot be opened: {}: {}", name, file, std::strerror(error));
  }
  ibv_free_device_list(list);
  return context;
}

}  // namespace

std::unique_ptr<Device> Device::open(const std::string& name, Status& status, std::string& why) {
  // What is registered stays the parent's after a fork: newer kernels (5.12) copy such pages for the child at once. On
  // older ones the child is not to get them, nor what else is in these pages. It has to be asked for before anything is
  // registered, and only where it is needed, since libibverbs would keep them from the child in any case.
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED && ibv_fork_init() != 0) {
    env::log(env::LogLevel::warn, "registered memory is not kept apart from children that the program forks: {}",
             std::strerror(errno));
  }
  Context context = open_context(name, status, why);
  if (!context) return nullptr;
  std::unique_ptr<Device> result(new Device);
  result->name_ = name;
  result->context_ = std::move(context);
  if (!result->query()) {
    status = Status::failed;
    why = fmt::format("the RDMA device {} does not answer: {}", name, std::strerror(errno));
    return nullptr;
  }
  // Reads of iWARP have one sink (RFC 5040, section 4.4), whatever the device says.
  result->read_segments_ =
      result->is_iwarp() ? 1 : static_cast<std::uint32_t>(std::max(result->attributes_.max_sge_rd, 1));
  result->lkeys_.reset(static_cast<std::atomic<std::uint32_t>*>(os::map_private_unlocked(sizeof(Lkeys))));
  if (!result->lkeys_) {
    status = Status::no_memory;
    why = "no memory";
    return nullptr;
  }
  os::set_nonblocking(result->context_->async_fd);
  return result;
}

// What the device and every port takes, and the port that is shown.
bool Device::query() {
  if (ibv_query_device(context(), &attributes_) != 0) return false;
  bool shows_active = false;
  for (int number = 1; number <= attributes_.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (ibv_query_port(context(), static_cast<std::uint8_t>(number), &port) != 0) return false;
    if (number == 1 || port.max_msg_sz < message_bytes_) message_bytes_ = port.max_msg_sz;
    if (number == 1 || (port.state == IBV_PORT_ACTIVE && !shows_active)) {
      port_ = {be64toh(attributes_.node_guid), static_cast<std::uint32_t>(number), 128U << port.active_mtu,
               state_name(port.state)};
      shows_active = port.state == IBV_PORT_ACTIVE;
    }
  }
  return true;
}

AdapterLimits Device::limits() const {
  const auto count = [](int value) { return static_cast<std::uint64_t>(std::max(value, 0)); };
  AdapterLimits limits;
  limits.queue_pairs = count(attributes_.max_qp);
  // A request may take as many of the device's as it has segments, where a Read has one sink.
  limits.send_depth = count(std::min(attributes_.max_qp_wr, attributes_.max_cqe / 4));
  limits.recv_depth = limits.send_depth;
  // Connection set-up counts them in a byte.
  limits.reads = count(std::min({attributes_.max_qp_rd_atom, attributes_.max_qp_init_rd_atom, 128}));
  limits.segments = count(std::min(attributes_.max_sge, attributes_.max_srq > 0 ? attributes_.max_srq_sge : 64));
  limits.regions = count(attributes_.max_mr);
  limits.region_bytes = attributes_.max_mr_size;
  limits.message_bytes = std::min<std::uint64_t>(message_bytes_, kSegmentMax);
  limits.receive_queues = count(attributes_.max_srq);
  limits.receive_queue_depth = count(std::min(attributes_.max_srq_wr, attributes_.max_cqe));
  return limits;
}

PdPtr Device::zone(ZoneId zone) {
  {
    os::Guard guard(lock_);
    if (const auto known = zones_.find(zone); known != zones_.end()) {
      if (PdPtr pd = known->second.lock()) return pd;
    }
  }
  PdPtr pd(ibv_alloc_pd(context()), [](ibv_pd* gone) {
    if (gone) ibv_dealloc_pd(gone);
  });
  if (!pd) return pd;
  os::Guard guard(lock_);
  std::erase_if(zones_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ibv_pd>& place = zones_[zone];
  if (PdPtr other = place.lock()) return other;  // another thread was faster
  place = pd;
  return pd;
}

MemoryRegion Device::register_memory(ZoneId zone, std::uint64_t address, std::uint64_t length, std::uint32_t rights) {
  PdPtr pd = this->zone(zone);
  if (!pd) return {};
  int access = 0;
  if ((rights & access::kRemoteRead) != 0) access |= IBV_ACCESS_REMOTE_READ;
  if ((rights & access::kRemoteWrite) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
  // What peers may write, the device wants to be written by us, too; posts are checked against what DAT was told.
  if ((rights & (access::kLocalWrite | access::kRemoteWrite)) != 0) access |= IBV_ACCESS_LOCAL_WRITE;
  const os::CancelOff off;  // dat_rmr_bind comes here as well
  ibv_mr* mr = ibv_reg_mr(pd.get(), reinterpret_cast<void*>(address), length, access);
  if (!mr) return {};
  return {std::move(pd), mr};
}

Status Device::add_region(const Region& region, RegionKeys& keys) {
  if ((region.rights & access::kZeroBased) != 0) return Status::unsupported;
  MemoryRegion memory = register_memory(region.zone, region.address, region.length, region.rights);
  if (!memory) return Status::no_memory;
  const std::uint32_t key = regions_.reserve();
  if (key == 0) return Status::no_memory;
  lkeys_[regions_.slot_of(key)].store(memory->lkey, std::memory_order_relaxed);
  keys = {key, memory->rkey};
  try {
    os::Guard guard(lock_);
    registered_.emplace(key, std::move(memory));
  } catch (const std::bad_alloc&) {
    regions_.remove(key);
    return Status::no_memory;
  }
  regions_.publish(key, region);
  return Status::ok;
}

MemoryRegion Device::take_region(std::uint32_t key) {
  regions_.remove(key);
  os::Guard guard(lock_);
  const auto found = registered_.find(key);
  if (found == registered_.end()) return {};
  MemoryRegion memory = std::move(found->second);
  registered_.erase(found);
  return memory;
}

}  // namespace anydat::nic::verbs
