// SPDX-License-Identifier: BSD-3-Clause
// Service points: sockets that listen.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <vector>

#include "env/log.h"
#include "nic/qualifier_ports.h"
#include "nic/soft/acceptor.h"
#include "nic/soft/adapter.h"
#include "nic/soft/address_watch.h"
#include "nic/soft/addresses.h"
#include "nic/soft/wire/iwarp/caller.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "os/socket.h"
#include "os/tcp_socket.h"

namespace anydat::nic::soft::iwarp {

namespace {

// Adapters of one user may share a port that is the qualifier, as long as each listens at addresses of its own or one
// at all of them: whose the qualifier is has been settled before. A derived port may be another qualifier's.
os::UniqueFd listen_at(const Address& address, bool shares, int& error) {
  os::UniqueFd socket = os::open_socket(address.generic.sa_family, SOCK_STREAM);
  if (socket) {
    os::share_with_past(socket.get());
    if (shares) os::share_with_listeners(socket.get());
    if (address.generic.sa_family == AF_INET6) {
      os::take_ipv4_along(socket.get(), IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr));
    }
    if (os::bind(socket.get(), address.generic, size_of(address)) && os::listen(socket.get())) return socket;
  }
  error = errno;
  return {};
}

Status status_of(int error, ConnQual qual) {
  switch (error) {
    case EADDRINUSE:
      return is_port(qual) ? Status::in_use : Status::none_free;
    case EACCES:
    case EPERM:
      return Status::denied;
    default:
      return Status::no_memory;
  }
}

Address all_addresses(int family) {
  Address address{};
  address.generic.sa_family = static_cast<sa_family_t>(family);
  return address;
}

class TcpListener final : public Listener, public AddressWatch::Follower {
 public:
  TcpListener(Fabric& fabric, ConnQual qual) : fabric_(fabric), qual_(qual) {}
  ~TcpListener() override {
    fabric_.adapter().address_watch().remove(*this);  // also when begin() has not come to its end
    stop();
  }
  ConnQual qual() const override { return qual_; }
  // Listens at all addresses that the adapter has now, and follows them if they are a device's.
  Status begin(ListenerEvents& events) {
    const bool all = fabric_.adapter().has_all_addresses();
    AddressWatch& watch = fabric_.adapter().address_watch();
    if (!all) watch.add(*this);  // before the look, so that no address comes between
    const auto now = all ? std::nullopt : addresses_of(fabric_.adapter().scope());
    const Status status = all ? listen_at_all() : listen_at_each(now.value_or(std::vector<Address>()));
    if (status != Status::ok) return status;
    if (!all && !now) watch.look_again(*this);
    fabric_.add_listener(qual_, events);
    listens_ = true;
    return Status::ok;
  }
  void stop() override {
    if (!listens_) return;
    listens_ = false;
    fabric_.adapter().address_watch().remove(*this);
    fabric_.remove_listener(qual_);
    for (const Port& port : ports_) port.acceptor->stop();
  }

  void addresses_changed(const std::vector<Address>& now) override {
    const auto is_there = [&](const Port& port) {
      return std::any_of(now.begin(), now.end(), [&](const Address& one) { return same_host(one, port.address); });
    };
    std::erase_if(ports_, [&](const Port& port) { return !is_there(port); });
    if (listen_at_each(now) != Status::ok) {
      env::log(env::LogLevel::warn, "qualifier {} cannot be listened at on an address that has come", qual_);
    }
  }

 private:
  struct Port {
    Address address;
    std::unique_ptr<Acceptor> acceptor;
  };

  Status listen_at_all() {
    // IPv6 takes IPv4 along, and may be switched off.
    int error = 0;
    for (const int family : {AF_INET6, AF_INET}) {
      error = add(all_addresses(family));
      if (error == 0) return Status::ok;
      if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;
    }
    return status_of(error, qual_);
  }

  Status listen_at_each(const std::vector<Address>& addresses) {
    for (const Address& address : addresses) {
      const auto is_it = [&](const Port& port) { return same_host(port.address, address); };
      if (std::any_of(ports_.begin(), ports_.end(), is_it)) continue;
      // IPv6 may be switched off, and an address may just be going, or not be usable yet, which is told of later.
      const int error = add(address);
      if (error != 0 && error != EAFNOSUPPORT && error != EADDRNOTAVAIL) return status_of(error, qual_);
    }
    return Status::ok;
  }

  int add(const Address& address) {  // 0, or what errno says
    if (is_port(qual_)) return add_at(address, qual_);
    // Every address may have another one of them.
    int error = EADDRINUSE;
    for (const std::uint16_t port : derived_ports(qual_)) {
      error = add_at(address, port);
      if (error != EADDRINUSE && error != EACCES && error != EPERM) break;
    }
    return error;
  }

  int add_at(const Address& address, std::uint64_t port) {
    int error = ENOMEM;
    os::UniqueFd socket = listen_at(with_port(address, port), is_port(qual_), error);
    if (!socket) return error;
    ports_.push_back(
        {address, std::make_unique<Acceptor>(
                      fabric_.engine(), fabric_.adapter().strangers(), std::move(socket),
                      [this](os::UniqueFd caller, const Address& source) { called(std::move(caller), source); })});
    if (ports_.back().acceptor->begin()) return 0;
    ports_.pop_back();
    return ENOMEM;
  }

  void called(os::UniqueFd caller, const Address& source) {
    try {
      fabric_.setups_and_ends().called(std::move(caller), source, qual_);
    } catch (const std::bad_alloc&) {
      env::log(env::LogLevel::warn, "a caller of service point {} was turned away: no memory", qual_);
    }
  }

  Fabric& fabric_;
  const ConnQual qual_;
  std::vector<Port> ports_;  // one for each address
  bool listens_ = false;
};

}  // namespace

std::unique_ptr<Listener> Fabric::listen(ConnQual qual, ListenerEvents& events, Status& status) {
  auto listener = std::make_unique<TcpListener>(*this, qual);
  status = listener->begin(events);
  if (status != Status::ok) listener.reset();
  return listener;
}

}  // namespace anydat::nic::soft::iwarp
