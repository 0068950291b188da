// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/fabric.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "env/log.h"
#include "nic/soft/acceptor.h"
#include "nic/soft/adapter.h"
#include "nic/soft/address_watch.h"
#include "nic/soft/addresses.h"
#include "nic/soft/wire/shm/connection_request.h"
#include "nic/soft/wire/shm/handshake.h"
#include "nic/soft/wire/shm/meeting.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/directory_socket.h"
#include "os/membarrier.h"
#include "os/peer_process.h"
#include "os/processor.h"
#include "os/random.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr os::Nanoseconds kLastPatience = os::kNsPerSecond / 10;

class ShmListener final : public Listener, public AddressWatch::Follower {
 public:
  ShmListener(Fabric& fabric, ConnQual qual, os::UniqueFd socket)
      : fabric_(fabric),
        qual_(qual),
        acceptor_(fabric.engine(), fabric.adapter().strangers(), std::move(socket), taker()) {}
  ~ShmListener() override { leave(); }
  bool begin(ListenerEvents& events) {
    fabric_.add_listener(qual_, events);
    return acceptor_.begin();
  }
  // Gives it a name in the directory for each address that others may know it by, also those that come later. Who does
  // not find one goes by TCP.
  void publish() {
    AddressWatch& watch = fabric_.adapter().address_watch();
    watch.add(*this);  // before the look, so that no address comes between
    const auto now = addresses_of(fabric_.adapter().scope());
    now ? publish_at(*now, true) : watch.look_again(*this);
  }
  // An address that has gone may be another host's by now, whose service points want these names: as long as we listen
  // there they do not get them, and their callers would reach us.
  void addresses_changed(const std::vector<Address>& now) override {
    published_.remove_if([&](Published& entry) {
      const auto is_it = [&](const Address& one) { return same_host(one, entry.address); };
      if (std::any_of(now.begin(), now.end(), is_it)) return false;
      entry.withdraw();
      return true;
    });
    publish_at(now, false);
  }

  ConnQual qual() const override { return qual_; }
  void stop() override {
    // A caller that came before this is answered at its attempt's next step: no service point listens. Later ones find
    // a dead socket, but the name is still taken.
    acceptor_.take_all_and_stop();
    for (Published& entry : published_) entry.withdraw();
    leave();
  }

 private:
  void called(os::LocalSocket caller) {
    // The caller finds the socket closed and goes on to TCP. The name is there for those who only ask whether it is.
    if (fabric_.adapter().config().wire == SoftConfig::Wire::tcp || !fabric_.adapter().shares_memory()) return;
    if (!os::peer_is_of_our_user(caller.get())) {
      env::log(env::LogLevel::warn, "a process of another user was turned away from service point {}", qual_);
      return;
    }
    try {
      fabric_.welcome(std::move(caller));
    } catch (const std::bad_alloc&) {
      env::log(env::LogLevel::warn, "a caller of service point {} was turned away: no memory", qual_);
    }
  }
  void leave() {
    if (stopped_) return;
    stopped_ = true;
    fabric_.adapter().address_watch().remove(*this);
    fabric_.remove_listener(qual_);
    acceptor_.stop();
    published_.clear();
  }
  Acceptor::Taker taker() {
    return [this](os::UniqueFd caller, const Address&) { called(os::LocalSocket(std::move(caller))); };
  }

  // What has once been said of an address holds as long as the host has it, also that it could not be published: the
  // next try would say so again. Two things pass: the lock of a folder is taken; and the process that had the address
  // before has not noticed yet that it has gone, and listens there.
  static constexpr os::Nanoseconds kPatience = 2 * os::kNsPerSecond;
  struct Published {
    // Those who have called before this are answered.
    void withdraw() {
      name.remove();  // while the socket listens: until then no other process takes the name
      if (acceptor) acceptor->take_all_and_stop();
    }

    Address address{};
    bool settled = false;                // it has been published, or could not be
    os::Nanoseconds patience = 0;        // tried again until then; 0: not yet
    std::unique_ptr<Acceptor> acceptor;  // null: not yet, or it could not be
    os::DirectoryName name;              // goes before the socket that listens at it
  };

  Published& entry_of(const Address& address) {
    const auto is_it = [&](const Published& entry) { return same_host(entry.address, address); };
    const auto found = std::find_if(published_.begin(), published_.end(), is_it);
    if (found != published_.end()) return *found;
    Published& fresh = published_.emplace_back();
    fresh.address = address;
    return fresh;
  }
  // `waits`: for the lock of a folder, though the engine is held meanwhile, so that the service point can be found when
  // the call that makes it returns; once for all of them. A process that has a lock for longer is stopped: that folder
  // is tried again by time.
  void publish_at(const std::vector<Address>& addresses, bool waits) {
    bool again = false;
    for (const Address& address : addresses) {
      if (!can_be_published(address)) continue;
      Published& entry = entry_of(address);
      if (entry.settled) continue;
      const std::string folder = folder_name(fabric_.adapter().config().shm_directory, address);
      const int error = publish_one(entry, folder, waits && !again);
      if (may_pass(error, waits) && !out_of_patience(entry)) {
        again = true;
        continue;
      }
      entry.settled = true;
      if (error != 0) env::log(env::LogLevel::warn, "{}/{} is not published: {}", folder, qual_, std::strerror(error));
    }
    if (again) fabric_.adapter().address_watch().look_again(*this);
  }
  // Who makes a service point where another stands is told so at once.
  static bool may_pass(int error, bool makes) {
    return error == EWOULDBLOCK || error == EINTR || (error == EADDRINUSE && !makes);
  }
  static bool out_of_patience(Published& entry) {
    const os::Nanoseconds now = os::now_ns();
    if (entry.patience == 0) entry.patience = now + kPatience;
    return now >= entry.patience;
  }
  int publish_one(Published& entry, const std::string& folder, bool waits) {  // 0, or what errno says
    int error = 0;
    os::UniqueFd socket = os::listen_in_directory(folder, std::to_string(qual_), waits, entry.name, error);
    if (!socket) return error;
    auto acceptor =
        std::make_unique<Acceptor>(fabric_.engine(), fabric_.adapter().strangers(), std::move(socket), taker());
    if (!acceptor->begin()) {
      entry.name.remove();
      return EMFILE;
    }
    entry.acceptor = std::move(acceptor);
    return 0;
  }

  Fabric& fabric_;
  const ConnQual qual_;
  Acceptor acceptor_;
  std::list<Published> published_;  // one for each address
  bool stopped_ = false;
};

}  // namespace

Fabric::Fabric(SoftAdapter& adapter)
    : adapter_(adapter), fences_(!os::allow_remote_fences()), sweep_timer_([this] { sweep(); }), files_(*this) {
  os::fill_random(std::as_writable_bytes(std::span(node_)));
}

Fabric::~Fabric() = default;

void Fabric::shut_down() {
  files_.close();
  active_handshakes_.clear();
  passive_handshakes_.clear();
  // All connections have ended, and each has waited for what its peer was in the middle of. A peer that still says that
  // it uses memory has a moment, all of them together; no other thread needs the engine now.
  for (auto link = links_.begin(); link != links_.end();) (*link++)->end().cut();
  const os::Nanoseconds patience = os::now_ns() + kLastPatience;
  while (!links_.empty()) {
    const auto using_memory = [](const auto& link) { return !link->end().let_go(); };
    if (std::none_of(links_.begin(), links_.end(), using_memory) || os::now_ns() >= patience) {
      while (!links_.empty()) links_.back()->end().finish();
    } else {
      os::sleep_for(20'000);
    }
  }
  sweep();
  engine().cancel_timer(sweep_timer_);
}

void Fabric::descriptors_lost() {
  files_.close();
  // One whose peer is in the middle of using memory stays until that is over, or its time.
  for (auto link = links_.begin(); link != links_.end();) (*link++)->end().cut();
  // Nothing is read from their sockets any more, which may be the program's.
  std::vector<ActiveHandshake*> callers;
  for (const auto& attempt : active_handshakes_) {
    if (attempt->has_socket()) callers.push_back(attempt.get());
  }
  for (ActiveHandshake* caller : callers) caller->descriptors_lost();
  std::vector<PassiveHandshake*> called;
  for (const auto& welcome : passive_handshakes_) called.push_back(welcome.get());
  for (PassiveHandshake* welcome : called) finished(*welcome);
}

Engine& Fabric::engine() const {
  return adapter_.engine();
}

std::unique_ptr<ShmStream> Fabric::connect(SoftQueuePair& queue_pair, const ConnectParameters& parameters,
                                           std::vector<std::string> scopes, const Address& local,
                                           std::uint64_t local_port) {
  auto stream = std::make_unique<ShmStream>(*this, queue_pair);
  ConnectBody body{};
  body.remote = local;
  body.local = parameters.remote;
  body.remote_port = local_port;
  body.qual = parameters.qual;
  body.connection = stream->name();
  body.rdma = stream->negotiation().terms();
  body.qos = parameters.qos;
  body.private_data_bytes = static_cast<std::uint32_t>(parameters.private_data.size());
  std::copy(parameters.private_data.begin(), parameters.private_data.end(), body.private_data);
  stream->negotiation().set_request(body);
  if (std::find(scopes.begin(), scopes.end(), parameters.adapter) != scopes.end())
    scopes = {std::string(parameters.adapter)};
  attempt(*stream, scopes, parameters.remote, parameters.qual);
  return stream;
}

bool Fabric::is_published(const Address& address, ConnQual qual) const {
  const std::string& directory = adapter_.config().shm_directory;
  return !directory.empty() && can_be_published(address) && os::is_socket(directory_name(directory, address, qual));
}

void Fabric::attempt(ShmStream& stream, const std::vector<std::string>& scopes, const Address& address, ConnQual qual) {
  std::deque<std::string> names;
  for (const std::string& scope : scopes) names.push_back(service_name(scope, qual));
  // An address of this namespace is not looked for there: another namespace may have the same one.
  if (scopes.empty()) names.push_back(directory_name(adapter_.config().shm_directory, address, qual));
  active_handshakes_.add(std::make_unique<ActiveHandshake>(*this, stream, std::move(names))).begin();
}

void Fabric::cancel_attempt(ShmStream& stream) {
  active_handshakes_.erase_if([&](ActiveHandshake& attempt) { return &attempt.stream() == &stream; });
}

// The devices, or "*" for all of them, whose service points have callers in common with ours of the same qualifier.
// Where no descriptor is left to ask for them with, there is none to listen with either.
std::vector<std::string> Fabric::rivals() const {
  if (!adapter_.has_all_addresses()) return {"*"};
  return host_devices().value_or(std::vector<std::string>());
}

// Whether a service point of one of them is there (PSP-ANY-3), as an error: EADDRINUSE if one is.
int Fabric::look_for_rivals(ConnQual qual, const std::vector<std::string>& rivals) {
  for (const std::string& rival : rivals) {
    const Status found = probe_listener(service_name(rival, qual));
    if (found == Status::no_memory) return EMFILE;
    if (found != Status::unreachable) return EADDRINUSE;
  }
  return 0;
}

std::unique_ptr<Listener> Fabric::listen(ConnQual qual, ListenerEvents& events, Status& status) {
  os::UniqueFd socket;
  int error = 0;
  if (qual != 0) {
    socket = listen_at(service_name(adapter_.scope(), qual), error);
  } else {
    // From a random place on, so that adapters that start together do not race for the same numbers.
    const SoftConfig& config = adapter_.config();
    const ConnQual count = config.last_port - config.first_port + 1;
    const ConnQual start = os::random_number() % count;
    const std::vector<std::string> rivals = this->rivals();
    error = EADDRINUSE;
    for (ConnQual i = 0; i < count && !socket && error == EADDRINUSE; ++i) {
      qual = config.first_port + (start + i) % count;
      socket = listen_at(service_name(adapter_.scope(), qual), error);
      // Looked for once the name is taken: of two who do this at a time, one at least finds the other.
      if (socket) error = look_for_rivals(qual, rivals);
      if (error != 0) socket.reset();
    }
    if (!socket && error == EADDRINUSE) error = EADDRNOTAVAIL;
  }
  if (!socket) {
    status = error == EADDRINUSE ? Status::in_use : error == EADDRNOTAVAIL ? Status::none_free : Status::no_memory;
    return nullptr;
  }
  auto listener = std::make_unique<ShmListener>(*this, qual, std::move(socket));
  status = listener->begin(events) ? Status::ok : Status::no_memory;
  if (status != Status::ok) {
    listener.reset();
  } else if (!adapter_.config().shm_directory.empty() && adapter_.config().wire != SoftConfig::Wire::tcp) {
    listener->publish();
  }
  return listener;
}

std::uint32_t Fabric::add(ShmStream& stream) {
  std::uint32_t index = 0;
  // A freed name rests while others are used, as long as the table may grow.
  if (free_names_.size() > 1024 || names_.size() >= (1u << kIndexBits)) {
    index = free_names_.front();
    free_names_.pop_front();
  } else {
    index = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back();
  }
  Name& entry = names_[index];
  entry.stream = &stream;
  ++entry.generation;
  return entry.generation << kIndexBits | index;
}

void Fabric::remove(ShmStream& stream) {
  cancel_attempt(stream);
  const std::uint32_t index = stream.name() & ((1u << kIndexBits) - 1);
  names_[index].stream = nullptr;
  try {
    free_names_.push_back(index);
  } catch (const std::bad_alloc&) {
    // The name is not used again.
  }
}

ShmStream* Fabric::find(std::uint32_t name, const Link& link) const {
  const std::uint32_t index = name & ((1u << kIndexBits) - 1);
  if (index >= names_.size()) return nullptr;
  ShmStream* stream = names_[index].stream;
  // A peer may name only connections of its own link.
  return stream && stream->name() == name && stream->link().get() == &link ? stream : nullptr;
}

std::shared_ptr<Link> Fabric::link_to(const NodeId& node, const os::PeerProcess& process) const {
  for (const auto& link : links_) {
    if (link->initiated() && !link->dead() && link->leads_to(node, process)) return link;
  }
  return nullptr;
}

ActiveHandshake* Fabric::attempt_attaching_to(const NodeId& node, const os::PeerProcess& process) const {
  for (const auto& attempt : active_handshakes_) {
    if (attempt->attaching_to(node, process)) return attempt.get();
  }
  return nullptr;
}

std::shared_ptr<Link> Fabric::add_link(Link::Parts parts) {
  std::list<std::shared_ptr<Link>> one;
  one.push_back(std::make_shared<Link>(*this, std::move(parts)));
  look_at_links(true);
  if (!one.front()->start()) return nullptr;
  links_.splice(links_.end(), one);
  return links_.back();
}

// An adapter without links does not look at them: that would be a third of an empty pass.
void Fabric::look_at_links(bool look) {
  if (look == links_looked_at_) return;
  if (look) {
    engine().add_source(link_set_);
  } else {
    engine().remove_source(link_set_);
  }
  links_looked_at_ = look;
}

void Fabric::region_gone(std::uint32_t key) {
  files_.forget(key);
  for (const auto& link : links_) link->mappings().region_gone(key);
}

void Fabric::fence_rdma_users(std::uint32_t key) const {
  if (std::any_of(links_.begin(), links_.end(), [key](auto& link) { return link->hazards().needs_fence(key); }))
    os::remote_fence();
}

bool Fabric::in_use(std::uint32_t key) const {
  fence_rdma_users(key);
  return std::any_of(links_.begin(), links_.end(), [&](auto& link) { return link->hazards().in_use(key); });
}

bool Fabric::press(std::uint32_t key) {
  fence_rdma_users(key);
  bool used = false;
  for (const auto& link : links_) used |= link->hazards().press(key);
  return used;
}

void Fabric::forget(Link& link) {
  const auto found = std::find_if(links_.begin(), links_.end(), [&](auto& entry) { return entry.get() == &link; });
  if (found == links_.end()) return;
  dead_links_.splice(dead_links_.end(), links_, found);
  engine().set_timer(sweep_timer_, os::now_ns());
}

bool Fabric::connect_arrived(Link& link, const CellView& view) {
  ConnectBody body;
  if (view.body_room < sizeof body) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.private_data_bytes > sizeof body.private_data) return false;
  for (const Address* address : {&body.remote, &body.local}) {
    if (address->generic.sa_family != AF_INET && address->generic.sa_family != AF_INET6) return false;
  }
  std::unique_ptr<ShmRequest> request;
  try {
    request = std::make_unique<ShmRequest>(*this, link.shared_from_this(), body);
  } catch (const std::bad_alloc&) {
    link.sender().send_control(CellKind::reject, body.connection,
                               static_cast<std::uint32_t>(RejectReason::backlog_full));
    return true;
  }
  // Without a listener the request refuses itself.
  if (ListenerEvents* to = listener(body.qual)) deliver(std::move(request), *to);
  return true;
}

ListenerEvents* Fabric::listener(ConnQual qual) const {
  const auto found = listeners_.find(qual);
  return found != listeners_.end() ? found->second : nullptr;
}

ServicePointBody Fabric::name_of(ConnQual qual) const {
  ServicePointBody body{};
  body.qual = qual;
  adapter_.scope().copy(body.scope, kScopeBytes - 1);
  return body;
}

void Fabric::deliver(std::unique_ptr<ShmRequest> given, ListenerEvents& to) {
  std::unique_ptr<ConnectionRequest> request = std::move(given);
  if (!to.on_request(request) && request) static_cast<ShmRequest&>(*request).refuse(RejectReason::backlog_full);
}

void Fabric::welcome(os::LocalSocket socket) {
  if (!passive_handshakes_.add(std::make_unique<PassiveHandshake>(*this, std::move(socket))).begin())
    passive_handshakes_.drop_newest();
}

void Fabric::finished(ActiveHandshake& attempt) {
  if (active_handshakes_.finished(attempt)) engine().set_timer(sweep_timer_, os::now_ns());
}

void Fabric::finished(PassiveHandshake& welcome) {
  if (passive_handshakes_.finished(welcome)) engine().set_timer(sweep_timer_, os::now_ns());
}

void Fabric::sweep() {
  active_handshakes_.sweep();
  passive_handshakes_.sweep();
  dead_links_.clear();
  if (links_.empty()) look_at_links(false);
}

}  // namespace anydat::nic::soft::shm
