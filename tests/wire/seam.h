// SPDX-License-Identifier: BSD-3-Clause
// A queue pair of the software NIC driven at the seam (nic/adapter.h), as a DAT object drives it: for what a NIC can do
// before, or whether, the API of either version shows it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nic/soft/adapter.h"
#include "support/patience.h"
#include "support/wire.h"

namespace anydat::test {

using Bytes = std::vector<std::byte>;

// Completions, in the order in which they came.
class SeamCompletions final : public nic::CompletionQueue {
 public:
  std::size_t push(std::span<const nic::Completion> completions) override;
  // The oldest that has not been taken; fails the test if none comes within patience().
  nic::Completion next();
  std::optional<nic::Completion> poll();

 private:
  std::mutex lock_;
  std::vector<nic::Completion> all_;
  std::size_t taken_ = 0;
};

// One opened adapter.
class SeamNic {
 public:
  explicit SeamNic(const Wire& wire);
  nic::soft::SoftAdapter& operator*() { return *adapter_; }
  nic::soft::SoftAdapter* operator->() { return adapter_.get(); }
  // Runs it with the engine held.
  template <typename Action>
  decltype(auto) held(Action&& action) {
    os::Guard guard(adapter_->engine());
    return action();
  }

 private:
  std::unique_ptr<nic::soft::SoftAdapter> adapter_;
};

// Memory of a test, registered.
class SeamMemory {
 public:
  SeamMemory(SeamNic& nic, std::size_t bytes, std::uint32_t rights, nic::ZoneId zone);
  ~SeamMemory() { remove(); }
  SeamMemory(const SeamMemory&) = delete;
  SeamMemory& operator=(const SeamMemory&) = delete;
  void remove();
  std::byte* data() { return memory_.get(); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.get()); }
  template <typename T>
  T& as(std::size_t index = 0) {
    return reinterpret_cast<T*>(memory_.get())[index];
  }
  std::uint32_t key() const { return keys_.local; }
  std::uint32_t remote_key() const { return keys_.remote; }
  nic::Segment segment(std::size_t offset, std::size_t bytes) const {
    return {keys_.local, 0, address() + offset, bytes};
  }

 private:
  SeamNic& nic_;
  std::unique_ptr<std::byte[], void (*)(std::byte*)> memory_;
  nic::RegionKeys keys_;
  bool removed_ = false;
};

inline constexpr nic::ZoneId kSeamZone = 7;
inline constexpr std::uint32_t kAllRights =
    nic::access::kLocalRead | nic::access::kLocalWrite | nic::access::kRemoteRead | nic::access::kRemoteWrite;

// An end of a connection, and what has been reported of it.
class SeamEnd final : public nic::QueuePairEvents {
 public:
  explicit SeamEnd(SeamNic& nic, const nic::QueuePairLimits& limits = {64, 64, 4, 4, 4, 4});
  ~SeamEnd();
  nic::QueuePair* operator->() { return queue_pair_.get(); }
  nic::QueuePair& operator*() { return *queue_pair_; }
  SeamNic& nic() { return nic_; }

  void post_recv(const nic::Segment& segment, std::uint64_t cookie = 0);
  void disconnect();

  // Reports.
  void on_established(std::span<const std::byte> data) override;
  void on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> data) override;
  void on_accept_failed() override {
    note([this] { accept_failed = true; });
  }
  void on_closed(bool broken) override {
    note([&] { closed = broken ? Closed::broken : Closed::in_order; });
  }
  void on_soft_watermark() override {}
  // Waits until it holds, looking with the lock of the reports held.
  bool wait_for(const std::function<bool()>& holds);
  bool expect_closed(bool broken);

  enum class Closed { no, in_order, broken };
  bool established = false;
  bool accept_failed = false;
  Closed closed = Closed::no;
  std::optional<nic::ConnectFailure> failure;
  Bytes private_data;
  SeamCompletions received;
  SeamCompletions sent;

 private:
  template <typename Change>
  void note(Change&& change) {
    std::lock_guard guard(lock_);
    change();
  }

  SeamNic& nic_;
  std::mutex lock_;
  std::unique_ptr<nic::QueuePair> queue_pair_;
};

// A service point that keeps what arrives.
class SeamServer final : public nic::ListenerEvents {
 public:
  explicit SeamServer(SeamNic& nic);
  ~SeamServer();
  nic::ConnQual qual() const { return qual_; }
  bool on_request(std::unique_ptr<nic::ConnectionRequest>& request) override;
  // The request that has arrived is dealt with by this, with the engine held.
  bool answer(const std::function<void(nic::ConnectionRequest&)>& how);

 private:
  SeamNic& nic_;
  std::unique_ptr<nic::Listener> listener_;
  std::unique_ptr<nic::ConnectionRequest> request_;
  nic::ConnQual qual_ = 0;
};

nic::Address seam_loopback();
// Asks; the outcome is reported.
void seam_connect(SeamEnd& from, nic::ConnQual qual, std::span<const std::byte> private_data = {});
// Joins both.
void seam_join(SeamEnd& client, SeamServer& server, SeamEnd& at_server);

// A test runs over each way that processes of one host have: memory that both map or copy from, cells alone, and TCP.
class SeamTest : public testing::TestWithParam<Wire> {};
const std::vector<Wire>& seam_wires();
std::string seam_wire_name(const testing::TestParamInfo<Wire>& info);

// Two adapters and a connection between them.
struct SeamPair {
  explicit SeamPair(const Wire& wire, const nic::QueuePairLimits& limits = {64, 64, 4, 4, 4, 4})
      : server_nic(wire),
        client_nic(wire),
        service(server_nic),
        server(server_nic, limits),
        client(client_nic, limits) {}
  void join() { seam_join(client, service, server); }
  SeamNic server_nic;
  SeamNic client_nic;
  SeamServer service;
  SeamEnd server;
  SeamEnd client;
};

}  // namespace anydat::test
