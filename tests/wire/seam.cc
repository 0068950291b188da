// SPDX-License-Identifier: BSD-3-Clause
#include "wire/seam.h"

#include <arpa/inet.h>

#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

namespace anydat::test {

namespace {

constexpr std::size_t kAlignment = 64;

void free_aligned(std::byte* memory) {
  ::operator delete[](memory, std::align_val_t(kAlignment));
}

}  // namespace

// ---- completions

std::size_t SeamCompletions::push(std::span<const nic::Completion> completions) {
  std::lock_guard guard(lock_);
  all_.insert(all_.end(), completions.begin(), completions.end());
  return completions.size();
}

std::optional<nic::Completion> SeamCompletions::poll() {
  std::lock_guard guard(lock_);
  if (taken_ == all_.size()) return std::nullopt;
  return all_[taken_++];
}

nic::Completion SeamCompletions::next() {
  std::optional<nic::Completion> found;
  if (eventually([&] { return (found = poll()).has_value(); })) return *found;
  ADD_FAILURE() << "no completion has come";
  return {};
}

// ---- an adapter

SeamNic::SeamNic(const Wire& wire) {
  // Tests open adapters in several threads, and the environment is the process's: one that is restored while another
  // opens would give that another wire.
  static std::mutex one_at_a_time;
  const std::lock_guard guard(one_at_a_time);
  const ScopedEnv env(wire.env);
  nic::Status status{};
  adapter_ = nic::soft::SoftAdapter::open(wire.ia_name, status);
  if (!adapter_) throw std::runtime_error("the adapter does not open");
}

// ---- memory

SeamMemory::SeamMemory(SeamNic& nic, std::size_t bytes, std::uint32_t rights, nic::ZoneId zone)
    : nic_(nic), memory_(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t(kAlignment))), free_aligned) {
  std::memset(memory_.get(), 0, bytes);
  if (nic_->add_region({address(), bytes, zone, rights}, keys_) != nic::Status::ok) {
    throw std::runtime_error("the memory is not registered");
  }
}

void SeamMemory::remove() {
  if (std::exchange(removed_, true)) return;
  for (;;) {
    const bool quiet = nic_.held([&] {
      nic_->remove_region(keys_.local);
      if (keys_.remote != keys_.local) nic_->remove_region(keys_.remote);
      return nic_->quiesce(keys_.local, true) && nic_->quiesce(keys_.remote, true);
    });
    if (quiet) return;
    nic_->await_quiet();
  }
}

// ---- an end

SeamEnd::SeamEnd(SeamNic& nic, const nic::QueuePairLimits& limits) : nic_(nic) {
  owner = this;
  nic_.held([&] {
    queue_pair_ = nic_->create_queue_pair(limits, nullptr, *this);
    if (!queue_pair_) throw std::runtime_error("no queue pair");
    queue_pair_->set_zone(kSeamZone);
    queue_pair_->set_completion_queues(&received, &sent);
  });
}

SeamEnd::~SeamEnd() {
  while (!nic_.held([&] { return queue_pair_->cut(); })) nic_->await_quiet();
  nic_.held([&] {
    queue_pair_->destroy();
    queue_pair_.reset();
  });
}

void SeamEnd::post_recv(const nic::Segment& segment, std::uint64_t cookie) {
  nic::RecvRequest request{cookie, {&segment, 1}};
  request.zone = kSeamZone;
  EXPECT_EQ(queue_pair_->post_recv(request), nic::Status::ok);
}

void SeamEnd::disconnect() {
  nic_.held([&] { queue_pair_->disconnect(true); });
}

void SeamEnd::on_established(std::span<const std::byte> data) {
  note([&] {
    established = true;
    private_data.assign(data.begin(), data.end());
  });
}

void SeamEnd::on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> data) {
  note([&] {
    failure = why;
    private_data.assign(data.begin(), data.end());
  });
}

bool SeamEnd::wait_for(const std::function<bool()>& holds) {
  return eventually([&] {
    std::lock_guard guard(lock_);
    return holds();
  });
}

bool SeamEnd::expect_closed(bool broken) {
  const bool over = wait_for([this] { return closed != Closed::no; });
  EXPECT_TRUE(over) << "the connection has not ended";
  EXPECT_EQ(closed == Closed::broken, broken);
  return over;
}

// ---- a service point

SeamServer::SeamServer(SeamNic& nic) : nic_(nic) {
  nic_.held([&] {
    nic::Status status{};
    listener_ = nic_->listen(0, *this, status);
    if (!listener_) throw std::runtime_error("nobody can listen");
    qual_ = listener_->qual();
  });
}

SeamServer::~SeamServer() {
  nic_.held([&] {
    request_.reset();
    listener_.reset();
  });
}

bool SeamServer::on_request(std::unique_ptr<nic::ConnectionRequest>& request) {
  if (request_) return false;
  request_ = std::move(request);
  return true;
}

bool SeamServer::answer(const std::function<void(nic::ConnectionRequest&)>& how) {
  return eventually([&] {
    return nic_.held([&] {
      if (!request_) return false;
      const std::unique_ptr<nic::ConnectionRequest> request = std::move(request_);
      how(*request);
      return true;
    });
  });
}

// ---- connections

const std::vector<Wire>& seam_wires() {
  static const std::vector<Wire> wires{
      {.name = "shm", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "shm"}}},
      {.name = "shm_ring", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "shm"}, {"DAT_SHM_COPY", "ring"}}},
      {.name = "tcp", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "tcp"}}},
      {.name = "tcp_crc", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "tcp"}, {"DAT_CRC", "on"}}},
  };
  return wires;
}

std::string seam_wire_name(const testing::TestParamInfo<Wire>& info) {
  return info.param.name;
}

nic::Address seam_loopback() {
  nic::Address address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void seam_connect(SeamEnd& from, nic::ConnQual qual, std::span<const std::byte> private_data) {
  nic::ConnectParameters parameters{seam_loopback(), qual, os::kForever, private_data, 0, {}};
  from.nic().held([&] { EXPECT_EQ(from->connect(parameters), nic::Status::ok); });
}

void seam_join(SeamEnd& client, SeamServer& server, SeamEnd& at_server) {
  seam_connect(client, server.qual());
  ASSERT_TRUE(server.answer([&](nic::ConnectionRequest& request) { request.accept(*at_server, {}); }));
  ASSERT_TRUE(client.wait_for([&] { return client.established; }));
  ASSERT_TRUE(at_server.wait_for([&] { return at_server.established; }));
}

}  // namespace anydat::test
