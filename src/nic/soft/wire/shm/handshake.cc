// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/handshake.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>

#include "env/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/meeting.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/lack.h"
#include "os/passed_descriptors.h"
#include "os/peer_process.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr os::Nanoseconds kPatience = 5 * os::kNsPerSecond;
constexpr os::Nanoseconds kBacklogRetry = 1'000'000;

bool send_greeting(const os::LocalSocket& socket, Greeting greeting, std::span<const int> fds = {}) {
  greeting.magic = kMagic;
  greeting.version = kVersion;
  return os::send_with_descriptors(socket, std::as_bytes(std::span(&greeting, 1)), fds);
}

enum class Heard : std::uint8_t { nothing_yet, greeting, hangup };

Heard receive_greeting(const os::LocalSocket& socket, Greeting& greeting, PassedDescriptors& descriptors) {
  const os::Arrived arrived =
      os::receive_with_descriptors(socket, std::as_writable_bytes(std::span(&greeting, 1)), descriptors);
  if (arrived.what == os::Arrival::nothing_yet) return Heard::nothing_yet;
  const bool whole = arrived.what == os::Arrival::datagram && arrived.bytes == sizeof greeting && !arrived.cut_short;
  return whole && greeting.magic == kMagic && greeting.version == kVersion ? Heard::greeting : Heard::hangup;
}

Greeting greeting_of(const Fabric& fabric, GreetingKind kind) {
  Greeting greeting{};
  greeting.kind = kind;
  greeting.wants_fences = fabric.fences() ? 1 : 0;
  std::copy(fabric.node().begin(), fabric.node().end(), greeting.node);
  return greeting;
}

NodeId node_of(const Greeting& greeting) {
  NodeId node;
  std::copy(std::begin(greeting.node), std::end(greeting.node), node.begin());
  return node;
}

// To receive by, for the peer to copy from or to our memory.
Segment make_segment(const Fabric& fabric, os::UniqueFd& fd) {
  Segment segment = Segment::create(fd);
  if (segment) {
    offer_probe(segment.header(), fabric.engine().waiting().thread_id());
  } else {
    env::log(env::LogLevel::warn,
             "no {} bytes can be had to share with a local process ({}): it is reached by TCP, if at all",
             kSegmentBytes, std::strerror(errno));
  }
  return segment;
}

}  // namespace

// ---- the connecting side

ActiveHandshake::ActiveHandshake(Fabric& fabric, ShmStream& stream, std::deque<std::string> names)
    : fabric_(fabric), stream_(stream), names_(std::move(names)), retry_timer_([this] { try_next(); }) {}

ActiveHandshake::~ActiveHandshake() {
  drop_socket();
  fabric_.engine().cancel_timer(retry_timer_);
  if (leader_) std::erase(leader_->followers_, this);
  // The attempts that relied on this one start over by themselves.
  for (ActiveHandshake* follower : followers_) {
    follower->leader_ = nullptr;
    follower->state_ = State::idle;
    fabric_.engine().set_timer(follower->retry_timer_, os::now_ns());
  }
}

// The first step is put off as well, so that no outcome is reported before the connect call has done its part.
void ActiveHandshake::begin() {
  fabric_.engine().set_timer(retry_timer_, os::now_ns());
}

void ActiveHandshake::drop_socket() {
  if (!socket_) return;
  fabric_.engine().unwatch(socket_.get(), *this);
  socket_.reset();
}

void ActiveHandshake::try_next() {
  while (!names_.empty()) {
    int error = 0;
    os::LocalSocket socket(call(names_.front(), error));
    if (!socket) {
      if (os::is_lack(error)) break;
      if (error == EAGAIN) {  // its backlog is full; the connection's own time-out bounds this
        fabric_.engine().set_timer(retry_timer_, os::now_ns() + kBacklogRetry);
        return;
      }
      names_.pop_front();
      continue;
    }
    if (!os::peer_is_of_our_user(socket.get())) {
      env::log(env::LogLevel::warn, "the service point {} belongs to another user; shared memory is for one user only",
               names_.front());
      names_.pop_front();
      continue;
    }
    socket_ = std::move(socket);
    if (!fabric_.engine().watch(socket_.get(), EPOLLIN, *this)) {
      socket_.reset();
      break;
    }
    state_ = State::greeting;
    if (!send_greeting(socket_, greeting_of(fabric_, GreetingKind::hello))) break;
    return;
  }
  give_up();
}

void ActiveHandshake::ready(std::uint32_t) {
  Greeting greeting;
  PassedDescriptors descriptors;
  switch (receive_greeting(socket_, greeting, descriptors)) {
    case Heard::nothing_yet:
      return;
    case Heard::hangup:
      give_up();
      return;
    case Heard::greeting:
      break;
  }
  try {
    heard(greeting, descriptors);
  } catch (const std::bad_alloc&) {
    give_up();
  }
}

void ActiveHandshake::heard(const Greeting& greeting, const PassedDescriptors& descriptors) {
  if (state_ == State::greeting && greeting.kind == GreetingKind::welcome) {
    welcomed(greeting);
  } else if (state_ == State::attaching && greeting.kind == GreetingKind::attached) {
    attached(greeting, descriptors);
  } else {
    give_up();
  }
}

void ActiveHandshake::welcomed(const Greeting& greeting) {
  peer_ = node_of(greeting);
  process_ = os::PeerProcess(socket_.get());
  if (const auto link = fabric_.link_to(peer_, process_)) {
    drop_socket();
    use(link);
    return;
  }
  if (ActiveHandshake* other = fabric_.attempt_attaching_to(peer_, process_)) {
    other->followers_.push_back(this);
    drop_socket();
    state_ = State::following;
    leader_ = other;
    return;
  }
  os::UniqueFd fd;
  inbound_ = make_segment(fabric_, fd);
  state_ = State::attaching;
  const int fds[] = {fd.get(), fabric_.adapter().regions().descriptor(), fabric_.link_set().descriptor()};
  if (!inbound_ || !send_greeting(socket_, greeting_of(fabric_, GreetingKind::attach), fds)) give_up();
}

void ActiveHandshake::attached(const Greeting& greeting, const PassedDescriptors& descriptors) {
  Segment outbound = Segment::attach(descriptors[0].get());
  PeerRegions peer_regions(descriptors[1].get());
  MarkTable marks = MarkTable::attach(descriptors[2].get());
  if (!outbound || !peer_regions || !marks) {
    give_up();
    return;
  }
  fabric_.engine().unwatch(socket_.get(), *this);
  std::shared_ptr<Link> link;
  try {
    link = fabric_.add_link({.socket = std::move(socket_),
                             .inbound = std::move(inbound_),
                             .outbound = std::move(outbound),
                             .regions = std::move(peer_regions),
                             .marks = std::move(marks),
                             .peer = peer_,
                             .initiated = true,
                             .fences = fabric_.fences() || greeting.wants_fences != 0});
  } catch (const std::bad_alloc&) {
    // As without a descriptor for it.
  }
  if (!link) {
    give_up();
    return;
  }
  std::vector<ActiveHandshake*> followers;
  followers.swap(followers_);
  for (ActiveHandshake* follower : followers) {
    follower->leader_ = nullptr;
    follower->use(link);
  }
  use(link);
}

void ActiveHandshake::use(const std::shared_ptr<Link>& link) {
  state_ = State::done;
  try {
    stream_.attach(link);
  } catch (const std::bad_alloc&) {
    give_up();
    return;
  }
  stream_.negotiation().ask();
  fabric_.finished(*this);
}

void ActiveHandshake::give_up() {
  state_ = State::done;
  ShmStream& stream = stream_;
  fabric_.finished(*this);
  stream.negotiation().nobody_listens();
}

// ---- the listening side

PassiveHandshake::PassiveHandshake(Fabric& fabric, os::LocalSocket socket)
    : Stranger(fabric.adapter().strangers(), socket.peer(), Stage::silent),
      fabric_(fabric),
      socket_(std::move(socket)),
      patience_([this] { fabric_.finished(*this); }) {}

PassiveHandshake::~PassiveHandshake() {
  if (socket_) fabric_.engine().unwatch(socket_.get(), *this);
  fabric_.engine().cancel_timer(patience_);
}

bool PassiveHandshake::begin() {
  if (!fabric_.engine().watch(socket_.get(), EPOLLIN, *this)) return false;
  fabric_.engine().set_timer(patience_, os::now_ns() + kPatience);
  // Who has said what it wants already is not one of those that are turned out for the next caller.
  ready(EPOLLIN);
  return true;
}

void PassiveHandshake::turn_out() {
  fabric_.engine().unwatch(socket_.get(), *this);
  socket_.reset();
  fabric_.finished(*this);
}

void PassiveHandshake::ready(std::uint32_t) {
  Greeting greeting;
  PassedDescriptors descriptors;
  const Heard heard = receive_greeting(socket_, greeting, descriptors);
  if (heard == Heard::nothing_yet) return;
  enter(Stage::talking);
  bool goes_on = false;
  try {
    goes_on = heard == Heard::greeting && step(greeting, descriptors);
  } catch (const std::bad_alloc&) {
    env::log(env::LogLevel::warn, "a local caller was turned away: no memory for a link");
  }
  if (!goes_on) fabric_.finished(*this);
}

// False: nothing more to do here.
bool PassiveHandshake::step(const Greeting& greeting, const PassedDescriptors& descriptors) {
  if (!greeted_) {
    if (greeting.kind != GreetingKind::hello) return false;
    greeted_ = true;
    peer_ = node_of(greeting);
    peer_wants_fences_ = greeting.wants_fences != 0;
    return send_greeting(socket_, greeting_of(fabric_, GreetingKind::welcome));
  }
  if (greeting.kind != GreetingKind::attach) return false;
  Segment outbound = Segment::attach(descriptors[0].get());
  PeerRegions peer_regions(descriptors[1].get());
  MarkTable marks = MarkTable::attach(descriptors[2].get());
  os::UniqueFd fd;
  Segment inbound = make_segment(fabric_, fd);
  if (!outbound || !peer_regions || !marks || !inbound) return false;
  const int fds[] = {fd.get(), fabric_.adapter().regions().descriptor(), fabric_.link_set().descriptor()};
  if (!send_greeting(socket_, greeting_of(fabric_, GreetingKind::attached), fds)) return false;
  fabric_.engine().unwatch(socket_.get(), *this);
  leave();
  fabric_.add_link({.socket = std::move(socket_),
                    .inbound = std::move(inbound),
                    .outbound = std::move(outbound),
                    .regions = std::move(peer_regions),
                    .marks = std::move(marks),
                    .peer = peer_,
                    .initiated = false,
                    .fences = fabric_.fences() || peer_wants_fences_});
  return false;
}

}  // namespace anydat::nic::soft::shm
