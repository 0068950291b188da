// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/kept_devices.h"

#include <map>
#include <string>
#include <utility>

#include "nic/verbs/cm.h"
#include "os/fork.h"
#include "os/lock.h"

namespace anydat::nic::verbs {

namespace {

struct Kept {
  CmChannel channel;
  CmIdPtr id;
};

struct KeptDevices {
  os::Mutex lock;
  // By name, and by number, since another device may come by the same name.
  std::map<std::pair<std::string, int>, Kept> all ANYDAT_GUARDED_BY(lock);
};
os::PerProcess<KeptDevices> kept_devices;

}  // namespace

void keep_bound(ibv_device* device, const Address& address) {
  KeptDevices& kept = kept_devices.get();
  os::Guard guard(kept.lock);
  Kept& entry = kept.all[{ibv_get_device_name(device), ibv_get_device_index(device)}];
  if (entry.id) return;
  entry.channel = CmChannel::of(rdma_create_event_channel);
  rdma_cm_id* id = nullptr;
  if (!entry.channel || create_id(entry.channel.get(), &id, nullptr) != 0) return;
  CmIdPtr owner(id);
  sockaddr_storage any_port = socket_address(address, 0);
  if (bind_id(id, reinterpret_cast<sockaddr*>(&any_port)) == 0) entry.id = std::move(owner);
}

}  // namespace anydat::nic::verbs
