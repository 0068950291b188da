// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "nic/adapter.h"
#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft::shm {

class Fabric;
class Link;

// A connection request that came over a link and has no answer yet. With the engine held.
class ShmRequest final : public ConnectionRequest {
 public:
  ShmRequest(Fabric& fabric, std::shared_ptr<Link> link, const ConnectBody& body);
  ~ShmRequest() override;

  const Address& remote_address() const override { return body_.remote; }
  std::uint64_t remote_port() const override { return body_.remote_port; }
  const Address& local_address() const override { return body_.local; }
  std::span<const std::byte> private_data() const override { return {body_.private_data, body_.private_data_bytes}; }
  void accept(QueuePair& queue_pair, std::span<const std::byte> private_data) override;
  void reject(std::span<const std::byte> private_data) override { answer(RejectReason::by_consumer, private_data); }
  Status hand_off(ConnQual qual) override;

  std::uint32_t remote_connection() const { return body_.connection; }
  void refuse(RejectReason reason) { answer(reason); }
  void requester_gone() { gone_ = true; }

 private:
  void answer(RejectReason reason, std::span<const std::byte> private_data = {});

  Fabric& fabric_;
  std::shared_ptr<Link> link_;
  const ConnectBody body_;
  bool gone_ = false;
  bool answered_ = false;
};

}  // namespace anydat::nic::soft::shm
