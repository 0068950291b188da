// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "nic/adapter.h"
#include "nic/soft/address_watch.h"
#include "nic/soft/delivery_batch.h"
#include "nic/soft/memory_users.h"
#include "nic/soft/moments.h"
#include "nic/soft/page_faulter.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/resident_pages.h"
#include "nic/soft/scopes.h"
#include "nic/soft/strangers.h"

namespace anydat::nic::soft {

namespace shm {
class Fabric;
}
namespace iwarp {
class Fabric;
}

struct SoftConfig {
  enum class Wire : std::uint8_t { automatic, shm, tcp };
  Wire wire = Wire::automatic;
  bool cross_copy = true;     // between processes of one host, where the kernel allows it
  std::string shm_directory;  // where processes of other network namespaces are met; empty: nowhere
  os::Nanoseconds receiver_not_ready_ns = os::kForever;
  enum class Crc : std::uint8_t { automatic, on, off };
  Crc crc = Crc::automatic;                            // of TCP: between hosts
  os::Nanoseconds silence_ns = 30 * os::kNsPerSecond;  // how long a host may be silent over TCP; or kForever
  // Ports that no program has named are taken from here: those of service points, and with `ports_chosen` also those
  // that connections come from.
  std::uint16_t first_port = 32768;
  std::uint16_t last_port = 60767;
  bool ports_chosen = false;
  static SoftConfig from_environment();
};

// The software NIC: one instance for each opened adapter. All addresses of this host, or those of one network device.
class SoftAdapter final : public Adapter {
 public:
  // `name` is "soft" or "soft-<network device>". Null if there is no such device or no memory; `status` tells which.
  static std::unique_ptr<SoftAdapter> open(const std::string& name, Status& status);
  // What it would say of itself, without making it. Status::unsupported: there is no such device.
  static Status ask(const std::string& name, AdapterInfo& info);
  ~SoftAdapter() override;

  const AdapterInfo& info() const override { return info_; }
  Engine& engine() override { return engine_; }
  RegionTable& regions() override { return regions_; }
  Status add_region(const Region& region, RegionKeys& keys) override;
  void remove_region(std::uint32_t key) override { regions_.remove(key); }
  bool quiesce(std::uint32_t key, bool open_to_peers) override;
  void expect_reads_into_windows() override;
  std::unique_ptr<Window> create_window(ZoneId zone, WindowScope scope, WindowEvents& events) override;
  std::unique_ptr<QueuePair> create_queue_pair(const QueuePairLimits& limits, ReceiveQueue* shared,
                                               QueuePairEvents& events) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth, std::uint32_t segments, ZoneId zone,
                                                     ReceiveQueueEvents& events) override;
  std::unique_ptr<Listener> listen(ConnQual qual, ListenerEvents& events, Status& status) override;

  // For queue pairs and wires.
  const SoftConfig& config() const { return config_; }
  bool shares_memory() const { return shares_memory_; }  // fixed by start(): whether segments can be made
  // Takes a window's key out of regions(). Peers that use it now, which are those of one stream or, with null, of any,
  // have half a second to let go of it, or lose their connections. False while there are any: ask again.
  bool close_window(std::uint32_t key, Stream* used_by);
  DeliveryBatch& batch() { return batch_; }
  Scopes& scopes() { return scopes_; }
  // Pages of this process: which are there, and who brings in others.
  ResidentPages& resident_pages() { return resident_pages_; }
  PageFaulter& page_faulter() { return page_faulter_; }
  Moments& moments() { return moments_; }
  // Chooses the wire and starts connecting. The queue pair is told its local address, which the peer will see.
  Status open_stream(SoftQueuePair& queue_pair, const ConnectParameters& parameters, std::unique_ptr<Stream>& stream);
  Status open_tcp_stream(SoftQueuePair& queue_pair, const ConnectParameters& parameters,
                         std::unique_ptr<Stream>& stream);
  Strangers& strangers() { return strangers_; }
  const std::string& scope() const { return scope_; }
  // The scopes that a service point reachable at a local address may have, in the order in which they are to be asked:
  // a device's goes before that of all addresses. None if the address is not of this host; no_memory if that cannot be
  // told for want of a descriptor or of memory.
  Status scopes_of(const Address& address, std::vector<std::string>& scopes) const;
  // Does a process of this user listen there, on an adapter of this name? unreachable: none does.
  Status probe_service_point(ConnQual qual) const;
  // Whether requests for that qualifier, which is no port, are this adapter's if they come in at that address of the
  // host. A device's adapter goes before that of all addresses.
  bool serves(ConnQual qual, const Address& local) const;
  // Whether it is the host's addresses, whatever they are, that it listens at and comes from; else they are those of
  // one device.
  bool has_all_addresses() const { return scope_ == "*"; }
  // At this moment, which may be none; nothing, and errno says why, where the system does not tell.
  std::optional<std::vector<Address>> own_addresses() const;
  AddressWatch& address_watch() { return address_watch_; }
  MemoryUsers& memory_users() { return memory_users_; }
  // Returns when the posts that are being carried out now have been. Later ones look at everything anew.
  void await_posts();
  // True when no queue pair acts any longer on a check of memory that came before. False: ask again.
  bool queue_pairs_let_go();

 private:
  SoftAdapter(AdapterInfo info, std::string scope);
  Status start();

  AdapterInfo info_;         // fixed once it is constructed
  const std::string scope_;  // "*": all addresses; else a device
  const SoftConfig config_;
  Engine engine_;
  ResidentPages resident_pages_;
  Moments moments_{engine_};
  PageFaulter page_faulter_{engine_};
  RegionTable regions_;
  MemoryUsers memory_users_;
  Scopes scopes_;
  Strangers strangers_;                          // with the engine held
  AddressWatch address_watch_{engine_, scope_};  // with the engine held
  bool shares_memory_ = true;
  std::atomic<bool> windows_read_into_{false};  // by this side's own Reads
  std::unique_ptr<shm::Fabric> shm_;
  std::unique_ptr<iwarp::Fabric> iwarp_;  // null: TCP is not wanted
  DeliveryBatch batch_;                   // with the engine held
  std::uint64_t next_port_ = 0;           // with the engine held
};

}  // namespace anydat::nic::soft
