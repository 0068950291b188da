// SPDX-License-Identifier: BSD-3-Clause
// Service points: sockets that listen.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <vector>

#include "base/log.h"
#include "nic/soft/acceptor.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/caller.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/sockets.h"

namespace anydat::nic::soft::iwarp {

namespace {

class TcpListener final : public Listener {
 public:
  TcpListener(Fabric& fabric, ConnQual qual) : fabric_(fabric), qual_(qual) {}
  ~TcpListener() override { stop(); }
  ConnQual qual() const override { return qual_; }
  bool add(base::UniqueFd socket) {
    ports_.push_back(std::make_unique<Acceptor>(
        fabric_.engine(), fabric_.adapter().strangers(), std::move(socket),
        [this](base::UniqueFd caller, const Address& source) { called(std::move(caller), source); }));
    return ports_.back()->begin();
  }
  void begin(ListenerEvents& events) {
    fabric_.add_listener(qual_, events);
    listens_ = true;
  }
  void stop() override {
    if (!listens_) return;
    listens_ = false;
    fabric_.remove_listener(qual_);
    for (const auto& port : ports_) port->stop();
  }

 private:
  void called(base::UniqueFd caller, const Address& source) {
    try {
      fabric_.called(std::move(caller), source, qual_);
    } catch (const std::bad_alloc&) {
      base::log(base::LogLevel::warn, "a caller at port {} was turned away: no memory", qual_);
    }
  }

  Fabric& fabric_;
  const ConnQual qual_;
  std::vector<std::unique_ptr<Acceptor>> ports_;  // one for each address
  bool listens_ = false;
};

// Adapters of one user may share a port, as long as each listens at addresses of its own or one at all of them: whose
// the qualifier is has been settled before.
base::UniqueFd listen_at(const Address& address, int& error) {
  base::UniqueFd socket = base::UniqueFd::of(
      [&] { return ::socket(address.generic.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  const int on = 1, off = 0;
  if (socket) {
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (address.generic.sa_family == AF_INET6) {
      const bool all = IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr);
      setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, all ? &off : &on, sizeof on);
    }
    if (bind(socket.get(), &address.generic, size_of(address)) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
  }
  error = errno;
  return {};
}

Status status_of(int error) {
  switch (error) {
    case EADDRINUSE:
      return Status::in_use;
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

}  // namespace

std::unique_ptr<Listener> Fabric::listen(ConnQual qual, ListenerEvents& events, Status& status) {
  auto listener = std::make_unique<TcpListener>(*this, qual);
  std::vector<Address> addresses = adapter_.own_addresses();
  const bool all = addresses.empty();
  if (all) addresses = {all_addresses(AF_INET6), all_addresses(AF_INET)};
  int error = EADDRNOTAVAIL;
  bool any = false;
  for (const Address& address : addresses) {
    base::UniqueFd socket = listen_at(with_port(address, qual), error);
    if (!socket) {
      // IPv6 may be switched off, and an address may just be going.
      if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) continue;
      status = status_of(error);
      return nullptr;
    }
    if (!listener->add(std::move(socket))) {
      status = Status::no_memory;
      return nullptr;
    }
    any = true;
    if (all) break;  // IPv6 takes IPv4 along
  }
  if (!any) {
    status = status_of(error);
    return nullptr;
  }
  listener->begin(events);
  status = Status::ok;
  return listener;
}

}  // namespace anydat::nic::soft::iwarp
