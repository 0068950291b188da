// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nic/adapter.h"
#include "nic/verbs/cm.h"
#include "os/unique_fd.h"

namespace anydat::nic::verbs {

class VerbsAdapter;

// Requests of which the last part has not come. With the engine held.
class Parts {
 public:
  // Adds one. False: it does not follow what came before, or there are too many.
  bool add(const CmParsed& part);
  // Takes out what came before the last one. False: not all has come.
  bool take(const CmParsed& last, std::vector<std::byte>& whole);

 private:
  struct Entry {
    os::Nanoseconds since;
    std::vector<std::byte> bytes;
  };
  std::map<std::uint64_t, Entry> entries_;
};

// A request that has arrived.
class VerbsRequest final : public ConnectionRequest, public CmHandler {
 public:
  VerbsRequest(VerbsAdapter& adapter, const CmEvent& event, CmIdPtr id, ConnQual qual);
  ~VerbsRequest() override;

  // ConnectionRequest
  const Address& remote_address() const override { return remote_; }
  std::uint64_t remote_port() const override { return remote_port_; }
  const Address& local_address() const override { return local_; }
  std::span<const std::byte> private_data() const override { return data_; }
  void accept(QueuePair& queue_pair, std::span<const std::byte> private_data) override;
  void reject(std::span<const std::byte> private_data) override { answer(CmHead::Kind::rejected, 0, private_data); }
  Status hand_off(ConnQual qual) override;

  // CmHandler: the requester has gone.
  void on_cm_event(const CmEvent& event) override;

  // What came with it, put together. False: it is only a part, or only asks whose the port is, or not for this service
  // point, and has been answered.
  bool assemble(const CmEvent& event);

 private:
  VerbsRequest(VerbsRequest& from, ConnQual qual);  // takes its place
  void answer(CmHead::Kind kind, std::uint64_t number = 0, std::span<const std::byte> private_data = {});

  VerbsAdapter& adapter_;
  CmIdPtr id_;  // null once it is answered
  ConnQual qual_;
  Address local_{};
  Address remote_{};
  std::uint64_t remote_port_ = 0;
  std::vector<std::byte> data_;
  bool has_head_ = false;
  bool gone_ = false;
  std::uint8_t responder_resources_ = 0;
  std::uint8_t initiator_depth_ = 0;
};

class VerbsListener final : public Listener, public CmHandler {
 public:
  VerbsListener(VerbsAdapter& adapter, ListenerEvents& events) : adapter_(adapter), events_(events) {}
  ~VerbsListener() override;
  Status listen(ConnQual qual);

  ConnQual qual() const override { return qual_; }
  // Its port stays taken; requests are refused.
  void stop() override;
  bool stopped() const { return stopped_; }
  void deliver(std::unique_ptr<ConnectionRequest> request);

  void on_cm_event(const CmEvent& event) override;

 private:
  VerbsAdapter& adapter_;
  ListenerEvents& events_;
  Status listen_at(const Address& address, ConnQual port);
  Status listen_derived(ConnQual qual);
  Status listen_everywhere(ConnQual qual);

  using Point = std::pair<std::string, ConnQual>;  // a service point, by device
  friend struct StoppedPoints;

  std::set<Point>::node_type stopped_point_;  // for stop(), which may not fail
  std::vector<CmIdPtr> ids_;                  // one for each address of the device
  std::vector<os::UniqueFd> claims_;          // of a qualifier that is no port
  ConnQual qual_ = 0;
  bool stopped_ = false;
};

}  // namespace anydat::nic::verbs
