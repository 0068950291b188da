// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "nic/adapter.h"
#include "nic/verbs/addresses.h"
#include "nic/verbs/attempts.h"
#include "nic/verbs/cm.h"
#include "nic/verbs/completions.h"
#include "nic/verbs/device.h"
#include "nic/verbs/device_events.h"
#include "nic/verbs/kernel_calls.h"
#include "nic/verbs/listener.h"
#include "nic/verbs/reaper.h"
#include "nic/verbs/windows.h"

namespace anydat::nic::verbs {

class VerbsQueuePair;
class SharedQueue;

// How a device treats a message that finds no buffer.
struct RnrRetries {
  std::uint8_t count = 7;   // for ever
  std::uint8_t timer = 12;  // 0.64 ms
  os::Nanoseconds limit_ns = os::kForever;
};

// The hardware NIC: one RDMA device, opened once for each adapter. Progress is polling its completion queues, and three
// descriptors that tell when to: of completions, of connection management, and of what befalls the device.
class VerbsAdapter final : public Adapter, public PollSource {
 public:
  static std::unique_ptr<Adapter> open(const std::string& device, const std::string& name, Status& status,
                                       std::string& why);
  // What it would say of itself, without making it.
  static Status ask(const std::string& device, const std::string& name, AdapterInfo& info, std::string& why);
  ~VerbsAdapter() override;

  // Adapter
  const AdapterInfo& info() const override { return info_; }
  Engine& engine() override { return engine_; }
  const RegionTable& regions() override { return device_->regions(); }
  Status add_region(const Region& region, RegionKeys& keys) override;
  void remove_region(std::uint32_t key) override;
  bool quiesce(std::uint32_t key, bool open_to_peers) override;
  void await_quiet() override;
  bool prepares_binds() const override { return true; }
  std::unique_ptr<PreparedBind> prepare_bind(ZoneId zone, const Segment& part, std::uint32_t rights) override;
  std::unique_ptr<Window> create_window(ZoneId zone, WindowScope scope, WindowEvents& events) override;
  std::unique_ptr<QueuePair> create_queue_pair(const QueuePairLimits& limits, ReceiveQueue* shared,
                                               QueuePairEvents& events) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth, std::uint32_t segments, ZoneId zone,
                                                     ReceiveQueueEvents& events) override;
  std::unique_ptr<Listener> listen(ConnQual qual, ListenerEvents& events, Status& status) override;

  // PollSource
  bool poll() override { return completions_.poll(); }
  void arm() override { completions_.arm(); }
  void disarm() override {}

  // For queue pairs, queues and listeners, with the engine held.
  Device& device() { return *device_; }
  CompletionPoller& completions() { return completions_; }
  Reaper& reaper() { return reaper_; }
  AbandonedAttempts& abandoned() { return abandoned_; }
  const std::vector<DeviceAddress>& addresses() const { return addresses_; }  // at least one
  rdma_event_channel* cm_channel() const { return cm_channel_.get(); }
  Windows& windows() { return windows_; }
  std::map<ConnQual, VerbsListener*>& listeners() { return listeners_; }
  Parts& parts() { return parts_; }
  bool gone() const { return gone_; }
  void device_gone();
  void report_fault() {
    if (events_) events_->on_fault();
  }
  // From any thread: false once the program has closed our descriptors, so that the device's may be its files.
  bool descriptors_are_ours() { return engine_.descriptor_loss().descriptors_are_ours(); }
  const RnrRetries& rnr_retries() const { return rnr_; }

 private:
  VerbsAdapter(std::unique_ptr<Device> device, CmChannel channel, AdapterInfo info,
               std::vector<DeviceAddress> addresses);
  Status start();
  void descriptors_lost();
  void let_abandoned_calls_end();
  void end_everything();

  std::unique_ptr<Device> device_;
  CmChannel cm_channel_;
  AdapterInfo info_;  // fixed once it is constructed
  const std::vector<DeviceAddress> addresses_;
  const RnrRetries rnr_;
  Engine engine_;

  // With the engine held.
  Reaper reaper_{engine_};
  KernelCalls kernel_calls_{engine_};
  std::unordered_set<std::uint32_t> leaving_;  // local keys of regions that the device still has
  Windows windows_{reaper_};
  CompletionPoller completions_;
  std::map<ConnQual, VerbsListener*> listeners_;
  Parts parts_;
  AbandonedAttempts abandoned_;
  bool gone_ = false;
  CmEvents cm_events_;
  DeviceEvents device_events_;
};

}  // namespace anydat::nic::verbs
