// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "env/environment.h"
#include "env/log.h"
#include "nic/verbs/kept_devices.h"
#include "nic/verbs/queue_pair.h"
#include "nic/verbs/shared_queue.h"
#include "nic/verbs/window.h"
#include "os/descriptor.h"
#include "os/processor.h"

namespace anydat::nic::verbs {

namespace {

// The receiver-not-ready timers that a device knows, in microseconds, by their codes (InfiniBand, volume 1, table 45).
constexpr std::array<std::uint32_t, 32> kRnrTimers{
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

// A limit is kept as nearly as retries of a device can: six at most, each after one of its timers.
RnrRetries rnr_retries_of(const Device& device) {
  RnrRetries kept;
  if (device.is_iwarp()) {
    kept.limit_ns = 0;  // RFC 5041, section 7.1: a message without a buffer ends the connection
    return kept;
  }
  const auto limit = env::number(env::Variable::rnr_timeout_ms);
  if (!limit) return kept;
  kept.count = 0;
  kept.limit_ns = 0;
  if (*limit == 0) return kept;
  const std::int64_t each_us = std::min<std::int64_t>(*limit, 3'600'000) * 1000 / 6;
  kept.count = 6;
  kept.timer = 0;
  for (std::uint8_t code = 1; code < kRnrTimers.size(); ++code) {
    if (kRnrTimers[code] >= each_us) {
      kept.timer = code;
      break;
    }
  }
  kept.limit_ns = os::Nanoseconds{kept.count} * kRnrTimers[kept.timer] * 1000;
  return kept;
}

// What there has to be of a device before an adapter is made of it.
struct Found {
  std::unique_ptr<Device> device;
  CmChannel channel;
  std::vector<DeviceAddress> addresses;
  AdapterInfo info;
};

Status find_device(const std::string& device_name, const std::string& name, Found& found, std::string& why) {
  Status status = Status::ok;
  found.device = Device::open(device_name, status, why);
  if (!found.device) return status;
  const Device& device = *found.device;
  found.channel = CmChannel::of(rdma_create_event_channel);
  if (!found.channel) {
    status = errno == EACCES ? Status::denied : Status::failed;
    why = fmt::format("RDMA connection management is not to be had: {} (the module rdma_ucm, /dev/infiniband/rdma_cm)",
                      std::strerror(errno));
    return status;
  }
  found.addresses = addresses_of_device(found.channel.get(), device_name);
  if (found.addresses.empty()) {
    why = fmt::format("no IP address of this host belongs to the RDMA device {}", device_name);
    return Status::failed;
  }
  const Address& address = found.addresses.front().address;
  keep_bound(device.context()->device, address);
  AdapterInfo info{.name = name, .address = address, .qos_supported = 0x0f};
  info.private_data_max = device.is_iwarp() ? kIwarpPrivateDataMax : kIbPrivateDataMax;
  info.reject_data_max = device.is_iwarp() ? kIwarpPrivateDataMax : kIbRejectDataMax;
  info.limits = device.limits();
  info.port = device.port();
  info.counts_taken_buffers = false;
  info.has_watermarks = false;
  info.shared_queue_of_any_zone = false;
  info.receiver_not_ready_ns = rnr_retries_of(device).limit_ns;
  info.sends_complete_at_receiver = !device.is_iwarp();
  info.tells_solicited = !device.is_iwarp();
  info.tells_remote_errors = !device.is_iwarp();
  info.confirms_accepts = !device.is_iwarp();
  info.tells_deaths = false;
  found.info = std::move(info);
  return Status::ok;
}

}  // namespace

VerbsAdapter::VerbsAdapter(std::unique_ptr<Device> device, CmChannel channel, AdapterInfo info,
                           std::vector<DeviceAddress> addresses)
    : device_(std::move(device)),
      cm_channel_(std::move(channel)),
      info_(std::move(info)),
      addresses_(std::move(addresses)),
      rnr_(rnr_retries_of(*device_)),
      completions_(*device_, reaper_),
      abandoned_(engine_, completions_.queues(), reaper_, kernel_calls_),
      cm_events_(cm_channel_),
      device_events_(*this) {}

std::unique_ptr<Adapter> VerbsAdapter::open(const std::string& device_name, const std::string& name, Status& status,
                                            std::string& why) {
  Found found;
  status = find_device(device_name, name, found, why);
  if (status != Status::ok) return nullptr;
  std::unique_ptr<VerbsAdapter> adapter(new VerbsAdapter(std::move(found.device), std::move(found.channel),
                                                         std::move(found.info), std::move(found.addresses)));
  status = adapter->start();
  if (status != Status::ok) {
    why = fmt::format("no thread, descriptors or completion channel for the RDMA device {}", device_name);
    return nullptr;
  }
  return adapter;
}

Status VerbsAdapter::ask(const std::string& device_name, const std::string& name, AdapterInfo& info, std::string& why) {
  Found found;
  const Status status = find_device(device_name, name, found, why);
  if (status == Status::ok) info = std::move(found.info);
  return status;
}

Status VerbsAdapter::start() {
  if (!os::set_nonblocking(cm_channel_->fd)) return Status::failed;
  if (const Status status = completions_.queues().open(); status != Status::ok) return status;
  engine_.descriptor_loss().when_told([this] { descriptors_lost(); });
  if (const Status status = engine_.start(); status != Status::ok) return status;
  if (const Status status = reaper_.start(); status != Status::ok) return status;
  os::Guard guard(engine_);
  engine_.add_source(*this);
  const bool watched = engine_.watch(completions_.queues().descriptor(), EPOLLIN, completions_.queues()) &&
                       engine_.watch(cm_channel_->fd, EPOLLIN, cm_events_) &&
                       engine_.watch(device_->context()->async_fd, EPOLLIN, device_events_);
  return watched ? Status::ok : Status::no_memory;
}

VerbsAdapter::~VerbsAdapter() {
  engine_.lock();
  engine_.remove_source(*this);
  engine_.unlock();
  engine_.waiting().stop();
  let_abandoned_calls_end();
  engine_.lock();
  abandoned_.drop_all();
  engine_.unlock();
  kernel_calls_.stop();
  engine_.lock();
  reaper_.finish();
  engine_.unlock();
  reaper_.stop();
}

// ---- objects

Status VerbsAdapter::add_region(const Region& region, RegionKeys& keys) {
  return descriptors_are_ours() ? device_->add_region(region, keys) : Status::failed;
}

void VerbsAdapter::remove_region(std::uint32_t key) {
  MemoryRegion memory = device_->take_region(key);
  if (!memory) return;
  windows_.region_goes(key);
  Reaper::Job job;
  job.memory = std::move(memory);
  try {
    leaving_.insert(key);
    job.done = [this, key] { leaving_.erase(key); };
  } catch (const std::bad_alloc&) {
    leaving_.erase(key);
    return;  // with the device's region
  }
  reaper_.give(std::move(job));
}

bool VerbsAdapter::quiesce(std::uint32_t key, bool /*open_to_peers*/) {
  // When it has been deregistered, the device has let go of the memory; posts that checked it before look at their
  // segments under the locks of their queues, and what they gave the device is refused there.
  // Windows have shown parts of it under keys of their own.
  reaper_.call_done();
  return !leaving_.contains(key) && !windows_.parts_are_leaving(key);
}

std::unique_ptr<PreparedBind> VerbsAdapter::prepare_bind(ZoneId zone, const Segment& part, std::uint32_t rights) {
  if (!descriptors_are_ours()) return nullptr;
  MemoryRegion memory = device_->register_memory(zone, part.address, part.length, rights);
  return memory ? std::make_unique<RegisteredPart>(std::move(memory)) : nullptr;
}

void VerbsAdapter::await_quiet() {
  if (!reaper_.help()) return engine_.waiting().pause();
  os::Guard guard(engine_);
  reaper_.call_done();
}

std::unique_ptr<Window> VerbsAdapter::create_window(ZoneId zone, WindowScope, WindowEvents& events) {
  auto window = std::make_unique<VerbsWindow>(*this, zone, events);
  windows_.add(*window);
  return window;
}

std::unique_ptr<QueuePair> VerbsAdapter::create_queue_pair(const QueuePairLimits& limits, ReceiveQueue* shared,
                                                           QueuePairEvents& events) {
  try {
    auto queue_pair = std::make_unique<VerbsQueuePair>(*this, static_cast<SharedQueue*>(shared), events);
    return queue_pair->init(limits) == Status::ok ? std::move(queue_pair) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::unique_ptr<ReceiveQueue> VerbsAdapter::create_receive_queue(std::uint32_t depth, std::uint32_t segments,
                                                                 ZoneId zone, ReceiveQueueEvents& events) {
  try {
    auto queue = std::make_unique<SharedQueue>(*this, events);
    return !gone_ && queue->init(depth, segments, zone) == Status::ok ? std::move(queue) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::unique_ptr<Listener> VerbsAdapter::listen(ConnQual qual, ListenerEvents& events, Status& status) {
  try {
    auto listener = std::make_unique<VerbsListener>(*this, events);
    status = listener->listen(qual);
    return status == Status::ok ? std::move(listener) : nullptr;
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
    return nullptr;
  }
}

// ---- ends

void VerbsAdapter::device_gone() {
  if (gone_) return;
  env::log(env::LogLevel::error, "{}: the device has gone; its connections break", info_.name);
  end_everything();
  if (events_) events_->on_failure();
}

// What the kernel did for the descriptors it does no more, but for what the mappings of queues keep alive.
void VerbsAdapter::descriptors_lost() {
  os::Descriptors::note_loss();  // in the table of this library, which opened them
  cm_channel_.note_loss();
  device_->descriptors_lost();
  completions_.queues().descriptors_lost();
  if (!gone_) end_everything();
}

// Each has a moment, of which no timer tells any more.
void VerbsAdapter::let_abandoned_calls_end() {
  for (const os::Nanoseconds until = os::now_ns() + AbandonedAttempts::kCallMax; os::now_ns() < until;) {
    engine_.lock();
    const bool any = abandoned_.any_in_call();
    engine_.unlock();
    if (!any) break;
    os::sleep_for(1'000'000);
  }
}

void VerbsAdapter::end_everything() {
  gone_ = true;
  // Identifiers go with the device, for which the kernel waits.
  completions_.queue_pairs().for_each([](VerbsQueuePair& queue_pair) { queue_pair.connection().device_gone(); });
  abandoned_.drop_all();
}

}  // namespace anydat::nic::verbs
