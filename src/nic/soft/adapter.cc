// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/adapter.h"

#include <algorithm>
#include <new>

#include "base/env.h"
#include "base/log.h"
#include "nic/soft/addresses.h"
#include "nic/soft/window.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft {

namespace {

constexpr std::string_view kPrefix = "soft";
constexpr std::uint64_t kFirstPort = 49152;
constexpr std::uint64_t kPortCount = 16384;

// Its own host's address that a peer can connect to: the first that is not loopback, if there is one.
Address best_address(const std::string& scope) {
  const std::vector<HostAddress> all = host_addresses();
  const auto found = std::find_if(all.begin(), all.end(), [&](const HostAddress& entry) {
    return scope == "*" ? entry.device != "lo" : entry.device == scope;
  });
  return found != all.end() ? found->address : loopback_address();
}

}  // namespace

SoftConfig SoftConfig::from_environment() {
  SoftConfig config;
  const std::string_view wire = base::env_text(base::EnvVar::wire);
  if (wire == "shm") config.wire = Wire::shm;
  if (wire == "tcp") config.wire = Wire::tcp;
  config.cross_copy = base::env_text(base::EnvVar::shm_copy) != "ring";
  if (const auto limit = base::env_number(base::EnvVar::rnr_timeout_ms)) {
    config.receiver_not_ready_ns = *limit * 1'000'000;
  }
  return config;
}

SoftAdapter::SoftAdapter(AdapterInfo info, std::string scope)
    : info_(std::move(info)), scope_(std::move(scope)), config_(SoftConfig::from_environment()) {
  fabric_ = std::make_unique<shm::Fabric>(*this);
}

std::unique_ptr<SoftAdapter> SoftAdapter::open(const std::string& name, Status& status) {
  status = Status::unsupported;
  std::string scope;
  if (name == kPrefix) {
    scope = "*";
  } else if (name.starts_with(std::string(kPrefix) + "-")) {
    scope = name.substr(kPrefix.size() + 1);
    const std::vector<std::string> devices = host_devices();
    if (std::find(devices.begin(), devices.end(), scope) == devices.end()) return nullptr;
  } else {
    return nullptr;
  }
  std::unique_ptr<SoftAdapter> adapter(new (std::nothrow) SoftAdapter({name, best_address(scope), 0x0f}, scope));
  if (!adapter) {
    status = Status::no_memory;
    return nullptr;
  }
  status = adapter->engine_.start();
  if (status != Status::ok) return nullptr;
  return adapter;
}

SoftAdapter::~SoftAdapter() {
  engine_.lock();
  fabric_->shut_down();
  engine_.unlock();
  engine_.stop();
}

Status SoftAdapter::add_region(const Region& region, RegionKeys& keys) {
  keys.local = keys.remote = regions_.add(region);
  return keys.local != 0 ? Status::ok : Status::no_memory;
}

bool SoftAdapter::quiesce(std::uint32_t key) {
  // Checks are acted on inside posts, by peers that copy for themselves, or with the engine held, as it is now.
  fabric_->region_gone(key);
  bool quiet = !fabric_->in_use(key);
  for (SoftQueuePair* queue_pair : queue_pairs_) quiet &= queue_pair->memory_changed();
  return quiet;
}

void SoftAdapter::close_to_peers(std::uint32_t key) {
  regions_.remove(key);
  fabric_->region_gone(key);
  fabric_->wait_for_users(key);
}

std::unique_ptr<Window> SoftAdapter::create_window(ZoneId zone, WindowEvents& events) {
  return std::unique_ptr<Window>(new (std::nothrow) SoftWindow(*this, zone, events));
}

std::unique_ptr<QueuePair> SoftAdapter::create_queue_pair(const QueuePairLimits& limits, ReceiveQueue* shared,
                                                          QueuePairEvents& events) {
  try {
    auto queue_pair = std::make_unique<SoftQueuePair>(*this, static_cast<ReceivePool*>(shared), events);
    if (queue_pair->init(limits) != Status::ok) return nullptr;
    queue_pairs_.insert(queue_pair.get());
    return queue_pair;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::unique_ptr<ReceiveQueue> SoftAdapter::create_receive_queue(std::uint32_t depth, std::uint32_t segments,
                                                                ZoneId zone, ReceiveQueueEvents& events) {
  return ReceivePool::create(engine_, depth, segments, zone, &events);
}

std::unique_ptr<Listener> SoftAdapter::listen(ConnQual qual, ListenerEvents& events, Status& status) {
  return fabric_->listen(qual, events, status);
}

std::vector<std::string> SoftAdapter::scopes_of(const Address& address) const {
  const std::optional<std::string> device = device_of(address);
  if (!device) return {};
  return {"*", *device};
}

Status SoftAdapter::open_stream(SoftQueuePair& queue_pair, const ConnectParameters& parameters,
                                std::unique_ptr<Stream>& stream, Address& local, std::uint64_t& local_port) {
  if (config_.wire == SoftConfig::Wire::tcp) return Status::unreachable;
  if (scopes_of(parameters.remote).empty()) return Status::unreachable;
  local = info_.address;
  local_port = kFirstPort + next_port_++ % kPortCount;
  stream = fabric_->connect(queue_pair, parameters, local, local_port);
  return Status::ok;
}

}  // namespace anydat::nic::soft
