// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/adapter.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <optional>

#include "base/fence.h"
#include "env/environment.h"
#include "env/log.h"
#include "nic/qualifier_ports.h"
#include "nic/service_claim.h"
#include "nic/soft/addresses.h"
#include "nic/soft/window.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/meeting.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/claimed_name.h"
#include "os/lack.h"
#include "os/memory_file.h"

namespace anydat::nic::soft {

namespace {

constexpr std::string_view kPrefix = "soft";
constexpr std::uint64_t kFirstPort = 49152;
constexpr std::uint64_t kPortCount = 16384;
constexpr int kQualifierTries = 256;
// A host that is well may put acknowledgements off, and is only asked once a second whether it is there.
constexpr os::Nanoseconds kSilenceMin = 2 * os::kNsPerSecond;

// Its own host's address that a peer can connect to: the first that is not loopback, if there is one.
Address best_address(const std::string& scope) {
  const std::vector<HostAddress> all = host_addresses();
  const auto found = std::find_if(all.begin(), all.end(), [&](const HostAddress& entry) {
    return scope == "*" ? entry.device != "lo" : entry.device == scope;
  });
  return found != all.end() ? found->address : loopback_address();
}

// "FIRST-LAST"; false if it is anything else.
bool parse_ports(std::string_view text, std::uint16_t& first, std::uint16_t& last) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  const auto number = [](std::string_view part, std::uint16_t& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return !part.empty() && error == std::errc{} && end == part.data() + part.size() && value != 0;
  };
  std::uint16_t low = 0, high = 0;
  if (!number(text.substr(0, dash), low) || !number(text.substr(dash + 1), high) || low > high) return false;
  first = low;
  last = high;
  return true;
}

os::Nanoseconds receiver_not_ready_limit() {
  const auto limit = env::number(env::Variable::rnr_timeout_ms);
  return limit ? *limit * 1'000'000 : os::kForever;
}

// Which addresses the adapter of that name has: all ("*"), or those of one network device. Nothing: there is no such
// adapter, or no memory or descriptor to look for it with, as `status` says.
std::optional<std::string> scope_of(const std::string& name, Status& status) {
  status = Status::ok;
  if (name == kPrefix) return std::string("*");
  status = Status::unsupported;
  if (!name.starts_with(std::string(kPrefix) + "-")) return std::nullopt;
  std::string scope = name.substr(kPrefix.size() + 1);
  const std::optional<std::vector<Address>> addresses = addresses_of(scope);
  if (!addresses && os::is_lack(errno)) status = Status::no_memory;
  if (!addresses || addresses->empty() || scope == "*") return std::nullopt;
  status = Status::ok;
  return scope;
}

AdapterInfo info_of(const std::string& name, const std::string& scope) {
  AdapterInfo info{.name = name, .address = best_address(scope), .qos_supported = 0x0f};
  info.receiver_not_ready_ns = receiver_not_ready_limit();
  info.zero_based = true;
  info.queue_pair_windows = true;
  info.abilities = ability::kAll;
  return info;
}

// One qualifier on both wires.
class BothListeners final : public Listener {
 public:
  BothListeners(std::unique_ptr<Listener> local, std::unique_ptr<Listener> tcp, os::UniqueFd claim)
      : local_(std::move(local)), tcp_(std::move(tcp)), claim_(std::move(claim)) {}
  ConnQual qual() const override { return local_->qual(); }
  void stop() override {
    local_->stop();
    tcp_->stop();
    claim_.reset();  // as the port is given back where the qualifier is one; the local name stays taken
  }

 private:
  std::unique_ptr<Listener> local_;
  std::unique_ptr<Listener> tcp_;
  os::UniqueFd claim_;  // of a qualifier that is no port
};

}  // namespace

SoftConfig SoftConfig::from_environment() {
  SoftConfig config;
  const std::string_view wire = env::text(env::Variable::wire);
  if (wire == "shm") config.wire = Wire::shm;
  if (wire == "tcp") config.wire = Wire::tcp;
  config.cross_copy = env::text(env::Variable::shm_copy) != "ring";
  if (const std::string_view directory = env::text(env::Variable::shm_dir); directory.starts_with('/')) {
    config.shm_directory = directory;
  } else if (!directory.empty()) {
    env::log(env::LogLevel::warn, "DAT_SHM_DIR is '{}' and not an absolute path; taking none", directory);
  }
  config.receiver_not_ready_ns = receiver_not_ready_limit();
  const std::string_view crc = env::text(env::Variable::crc);
  if (crc == "on") config.crc = Crc::on;
  if (crc == "off") config.crc = Crc::off;
  if (const auto limit = env::number(env::Variable::tcp_timeout_ms)) {
    config.silence_ns = *limit == 0 ? os::kForever : *limit * 1'000'000;
    if (config.silence_ns < kSilenceMin) {
      env::log(env::LogLevel::warn, "DAT_TCP_TIMEOUT_MS is {}, less than hosts that are well may need; taking {}",
               *limit, kSilenceMin / 1'000'000);
      config.silence_ns = kSilenceMin;
    }
  }
  if (const std::string_view ports = env::text(env::Variable::port_range); !ports.empty()) {
    config.ports_chosen = parse_ports(ports, config.first_port, config.last_port);
    if (!config.ports_chosen) {
      env::log(env::LogLevel::warn, "DAT_PORT_RANGE is '{}' and not FIRST-LAST, two port numbers; taking {}-{}", ports,
               config.first_port, config.last_port);
    }
  }
  return config;
}

SoftAdapter::SoftAdapter(AdapterInfo info, std::string scope)
    : info_(std::move(info)), scope_(std::move(scope)), config_(SoftConfig::from_environment()) {
  shm_ = std::make_unique<shm::Fabric>(*this);
  if (config_.wire != SoftConfig::Wire::shm) iwarp_ = std::make_unique<iwarp::Fabric>(*this);
}

std::unique_ptr<SoftAdapter> SoftAdapter::open(const std::string& name, Status& status) {
  const std::optional<std::string> scope = scope_of(name, status);
  if (!scope) return nullptr;
  std::unique_ptr<SoftAdapter> adapter(new (std::nothrow) SoftAdapter(info_of(name, *scope), *scope));
  if (!adapter) {
    status = Status::no_memory;
    return nullptr;
  }
  status = adapter->start();
  if (status != Status::ok) return nullptr;
  return adapter;
}

Status SoftAdapter::ask(const std::string& name, AdapterInfo& info) {
  Status status{};
  const std::optional<std::string> scope = scope_of(name, status);
  if (scope) info = info_of(name, *scope);
  return status;
}

Status SoftAdapter::start() {
  engine_.descriptor_loss().when_told([this] {
    os::Descriptors::note_loss();
    // Without memory for the one the other is told all the same.
    run_safely([this] { shm_->descriptors_lost(); });
    if (iwarp_) run_safely([this] { iwarp_->descriptors_lost(); });
  });
  if (const Status status = engine_.start(); status != Status::ok) return status;
  if (regions_.descriptor() < 0 || !shm_->can_link() || !os::file_may_have(shm::kSegmentBytes)) {
    // A peer could not check what it may do here, or had nothing to write into.
    env::log(
        env::LogLevel::error,
        "{}: no memory can be shared, since no file of {} bytes can be made and mapped (RLIMIT_FSIZE, RLIMIT_NOFILE, "
        "RLIMIT_MEMLOCK); {}",
        info_.name, shm::kSegmentBytes, iwarp_ ? "all connections go by TCP" : "and DAT_WIRE allows nothing else");
    if (!iwarp_) return Status::no_memory;
    shares_memory_ = false;
  }
  // The descriptor that this takes is there from the beginning.
  resident_pages_.are_resident(0, {reinterpret_cast<std::uintptr_t>(this), 1}, false, engine_.ticks());
  os::Guard guard(engine_);
  return iwarp_ ? iwarp_->start() : Status::ok;
}

SoftAdapter::~SoftAdapter() {
  engine_.lock();
  shm_->shut_down();
  if (iwarp_) iwarp_->shut_down();
  moments_.stop();
  engine_.unlock();
  engine_.waiting().stop();
}

Status SoftAdapter::add_region(const Region& region, RegionKeys& keys) {
  keys.local = keys.remote = regions_.add(region);
  return keys.local != 0 ? Status::ok : Status::no_memory;
}

bool SoftAdapter::quiesce(std::uint32_t key, bool open_to_peers) {
  // Checks are acted on inside posts, by peers that copy for themselves, or with the engine held, as it is now.
  if (open_to_peers) shm_->region_gone(key);
  resident_pages_.forget_untold();
  const bool unused = !open_to_peers || !shm_->in_use(key);
  return queue_pairs_let_go() && unused;
}

bool SoftAdapter::queue_pairs_let_go() {
  bool quiet = true;
  memory_users_.for_each([&](SoftQueuePair& queue_pair) { quiet &= queue_pair.connection().region_removed(); });
  return quiet;
}

void SoftAdapter::await_posts() {
  memory_users_.for_each([](SoftQueuePair& queue_pair) { queue_pair.connection().await_posts(); });
}

// Pairs with close_window(): either this is seen there, or the next check of the key finds it gone.
void SoftAdapter::expect_reads_into_windows() {
  if (windows_read_into_.load(std::memory_order_relaxed)) [[likely]]
    return;
  windows_read_into_.store(true);
  base::full_fence();
}

bool SoftAdapter::close_window(std::uint32_t key, Stream* used_by) {
  regions_.remove(key);
  base::full_fence();
  if (windows_read_into_.load()) await_posts();
  shm_->region_gone(key);
  return used_by ? used_by->lets_go_of(key) : !shm_->press(key);
}

std::unique_ptr<Window> SoftAdapter::create_window(ZoneId zone, WindowScope scope, WindowEvents& events) {
  return std::unique_ptr<Window>(new (std::nothrow) SoftWindow(*this, zone, scope, events));
}

std::unique_ptr<QueuePair> SoftAdapter::create_queue_pair(const QueuePairLimits& limits, ReceiveQueue* shared,
                                                          QueuePairEvents& events) {
  try {
    auto queue_pair = std::make_unique<SoftQueuePair>(*this, static_cast<ReceivePool*>(shared), events);
    if (queue_pair->init(limits) != Status::ok) return nullptr;
    return queue_pair;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::unique_ptr<ReceiveQueue> SoftAdapter::create_receive_queue(std::uint32_t depth, std::uint32_t segments,
                                                                ZoneId zone, ReceiveQueueEvents& events) {
  return ReceivePool::create(engine_, depth, segments, zone, &events);
}

// The local name stands for the qualifier on either wire: it is this adapter's alone on this host, while its TCP port
// may be shared with adapters of other devices.
std::unique_ptr<Listener> SoftAdapter::listen(ConnQual qual, ListenerEvents& events, Status& status) try {
  for (int tries = qual == 0 ? kQualifierTries : 1; tries > 0; --tries) {
    std::unique_ptr<Listener> local = shm_->listen(qual, events, status);
    if (!local || !iwarp_) return local;
    os::UniqueFd claim;
    if (int error = 0; !is_port(qual) && !(claim = os::claim_name(tcp_claim(scope_, qual), error))) {
      status = error == EADDRINUSE ? Status::in_use : Status::no_memory;
      return nullptr;
    }
    std::unique_ptr<Listener> tcp = iwarp_->listen(local->qual(), events, status);
    if (tcp) return std::make_unique<BothListeners>(std::move(local), std::move(tcp), std::move(claim));
    if (status != Status::in_use) return nullptr;
  }
  if (qual == 0) status = Status::none_free;
  return nullptr;
} catch (const std::bad_alloc&) {
  status = Status::no_memory;
  return nullptr;
}

bool SoftAdapter::serves(ConnQual qual, const Address& local) const {
  if (!has_all_addresses()) return true;
  std::string device;
  return device_of(local, device) != Status::ok || !os::is_claimed(tcp_claim(device, qual));
}

Status SoftAdapter::scopes_of(const Address& address, std::vector<std::string>& scopes) const {
  std::string device;
  const Status found = device_of(address, device);
  scopes.clear();
  if (found == Status::ok) scopes = {device, "*"};
  return found == Status::unreachable ? Status::ok : found;
}

Status SoftAdapter::probe_service_point(ConnQual qual) const {
  return shm::probe_listener(shm::service_name(scope_, qual));
}

std::optional<std::vector<Address>> SoftAdapter::own_addresses() const {
  return addresses_of(scope_);
}

Status SoftAdapter::open_stream(SoftQueuePair& queue_pair, const ConnectParameters& parameters,
                                std::unique_ptr<Stream>& stream) {
  if (config_.wire == SoftConfig::Wire::tcp || !shares_memory_) return open_tcp_stream(queue_pair, parameters, stream);
  std::vector<std::string> scopes;
  if (scopes_of(parameters.remote, scopes) != Status::ok) return Status::no_memory;
  if (scopes.empty() && !shm_->is_published(parameters.remote, parameters.qual)) {
    if (config_.wire == SoftConfig::Wire::shm) return Status::unreachable;
    return open_tcp_stream(queue_pair, parameters, stream);
  }
  const std::uint64_t port = kFirstPort + next_port_++ % kPortCount;
  queue_pair.connection().set_local(info_.address, port);
  stream = shm_->connect(queue_pair, parameters, std::move(scopes), info_.address, port);
  return Status::ok;
}

Status SoftAdapter::open_tcp_stream(SoftQueuePair& queue_pair, const ConnectParameters& parameters,
                                    std::unique_ptr<Stream>& stream) {
  if (!iwarp_) return Status::unreachable;
  auto made = std::make_unique<iwarp::TcpStream>(*iwarp_, queue_pair);
  const Status status = made->negotiation().connect(parameters);
  if (status == Status::ok) stream = std::move(made);
  return status;
}

}  // namespace anydat::nic::soft
