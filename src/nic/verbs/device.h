// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "nic/adapter.h"
#include "nic/verbs/resources.h"
#include "os/lock.h"
#include "os/mapping.h"

namespace anydat::nic::verbs {

// An opened RDMA device with the memory that is registered with it.
//
// Thread safety: any thread may call any method. What takes the kernel's time is done without lock_.
class Device {
 public:
  // Null, with one sentence, if it cannot be opened.
  static std::unique_ptr<Device> open(const std::string& name, Status& status, std::string& why);

  ibv_context* context() const { return context_.get(); }
  const ibv_device_attr& attributes() const { return attributes_; }
  const std::string& name() const { return name_; }
  bool is_iwarp() const { return context_->device->transport_type == IBV_TRANSPORT_IWARP; }
  AdapterLimits limits() const;
  DevicePort port() const { return port_; }  // the first that is active, or the first
  // The program has closed our descriptors, and may have files of its own by their numbers.
  void descriptors_lost() { context_.note_loss(); }
  // How many segments one RDMA Read of the device scatters to.
  std::uint32_t read_segments() const { return read_segments_; }

  // The protection domain that stands for a zone; it lasts as long as an object refers to it.
  PdPtr zone(ZoneId zone);
  // Registers memory; empty if the device or the system refuses.
  MemoryRegion register_memory(ZoneId zone, std::uint64_t address, std::uint64_t length, std::uint32_t rights);

  const RegionTable& regions() const { return regions_; }
  Status add_region(const Region& region, RegionKeys& keys);
  // The region is found no more. What the device has of it is to be given up; empty if that has been taken out before.
  MemoryRegion take_region(std::uint32_t key);

  // Local segments in the device's terms; returns how many. Requires: room for all. Segments whose region has gone
  // since they were posted get a key that the device refuses when it comes to them.
  int fill(ibv_sge* to, std::span<const Segment> segments) const {
    int count = 0;
    for (const Segment& segment : segments) {
      if (segment.length == 0) continue;
      const std::uint32_t lkey = lkeys_[regions_.slot_of(segment.key)].load(std::memory_order_relaxed);
      to[count++] = {segment.address, static_cast<std::uint32_t>(std::min(segment.length, kSegmentMax)),
                     regions_.alive(segment.key) ? lkey : 0};
    }
    return count;
  }

 private:
  // More than any segment that the DAT objects let through; a receive's segment may be longer, and then its end is
  // never reached.
  static constexpr std::uint64_t kSegmentMax = std::uint64_t{1} << 31;

  using Lkeys = std::atomic<std::uint32_t>[kRegionsMax];
  struct Unmap {
    void operator()(void* memory) const { os::unmap(memory, sizeof(Lkeys)); }
  };
  Device() = default;
  bool query();  // false, with errno, if it does not answer

  std::string name_;
  Context context_;
  ibv_device_attr attributes_{};
  std::uint64_t message_bytes_ = 0;
  DevicePort port_;
  std::uint32_t read_segments_ = 1;
  RegionTable regions_;
  os::Mutex lock_;
  std::map<ZoneId, std::weak_ptr<ibv_pd>> zones_ ANYDAT_GUARDED_BY(lock_);
  std::unordered_map<std::uint32_t, MemoryRegion> registered_ ANYDAT_GUARDED_BY(lock_);  // by local key
  // The device's key of each entry of regions_; fresh pages cost nothing until they are used.
  std::unique_ptr<std::atomic<std::uint32_t>[], Unmap> lkeys_;
};

}  // namespace anydat::nic::verbs
