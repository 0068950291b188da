// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nic/adapter.h"
#include "nic/soft/finishing.h"
#include "nic/soft/wire/shm/file_finder.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/link_set.h"

namespace anydat::nic::soft {
class SoftAdapter;
class SoftQueuePair;
}  // namespace anydat::nic::soft

namespace anydat::nic::soft::shm {

class ActiveHandshake;
class ShmRequest;
class PassiveHandshake;

// The shared-memory wire of one adapter instance: who can be reached, the links to them, and the names of connections.
// All with the engine held.
class Fabric {
 public:
  explicit Fabric(SoftAdapter& adapter);
  ~Fabric();
  void shut_down();  // cuts every link; what still refers to them sees them dead
  // The program has closed our descriptors: all connections are broken.
  void descriptors_lost();

  SoftAdapter& adapter() const { return adapter_; }
  Engine& engine() const;
  const NodeId& node() const { return node_; }
  bool fences() const { return fences_; }
  LinkSet& link_set() { return link_set_; }
  bool can_link() const { return static_cast<bool>(link_set_); }  // false: there was no memory for the marks of peers

  // Opens a way to the service point `qual` of one of these scopes, or, if there are none, to the one that is published
  // for an address of another network namespace. The stream reports to its queue pair.
  std::unique_ptr<ShmStream> connect(SoftQueuePair& queue_pair, const ConnectParameters& parameters,
                                     std::vector<std::string> scopes, const Address& local, std::uint64_t local_port);
  void cancel_attempt(ShmStream& stream);
  // The stream's request shall go to that service point; it has no link at the moment.
  // Without scopes, because its address is not of this network namespace, the directory is where to ask.
  void attempt(ShmStream& stream, const std::vector<std::string>& scopes, const Address& address, ConnQual qual);
  // Whether a service point at that address, which is not of this network namespace, has a name in the directory.
  bool is_published(const Address& address, ConnQual qual) const;
  // Tells the peers that have mapped it that a region has been removed.
  void region_gone(std::uint32_t key);
  FileFinder& files() { return files_; }
  // Does a peer use the region, which has been removed, by RDMA?
  bool in_use(std::uint32_t key) const;
  // The same, and one that does has to let go of it, or loses its connections.
  bool press(std::uint32_t key);
  std::unique_ptr<Listener> listen(ConnQual qual, ListenerEvents& events, Status& status);

  // Names of connections: what a peer calls them. A name is not reused soon, so messages to a connection that has ended
  // find no connection.
  std::uint32_t add(ShmStream& stream);
  void remove(ShmStream& stream);
  ShmStream* find(std::uint32_t name, const Link& link) const;

  // For handshakes, links and listeners.
  std::shared_ptr<Link> link_to(const NodeId& node, const os::PeerProcess& process) const;  // one that we made
  ActiveHandshake* attempt_attaching_to(const NodeId& node, const os::PeerProcess& process) const;
  std::shared_ptr<Link> add_link(Link::Parts parts);
  void forget(Link& link);
  bool connect_arrived(Link& link, const CellView& view);
  ListenerEvents* listener(ConnQual qual) const;  // of this node
  ServicePointBody name_of(ConnQual qual) const;  // of this node
  void deliver(std::unique_ptr<ShmRequest> request, ListenerEvents& to);
  void welcome(os::LocalSocket socket);
  void finished(ActiveHandshake& attempt);
  void finished(PassiveHandshake& welcome);
  void add_listener(ConnQual qual, ListenerEvents& events) { listeners_[qual] = &events; }
  void remove_listener(ConnQual qual) { listeners_.erase(qual); }

 private:
  std::vector<std::string> rivals() const;
  static int look_for_rivals(ConnQual qual, const std::vector<std::string>& rivals);

  struct Name {
    ShmStream* stream = nullptr;
    std::uint32_t generation = 0;
  };
  static constexpr std::uint32_t kIndexBits = 20;

  void fence_rdma_users(std::uint32_t key) const;

  SoftAdapter& adapter_;
  NodeId node_;
  bool fences_;
  std::vector<Name> names_{1};  // index 0 stays unused, so that no name is 0
  std::deque<std::uint32_t> free_names_;
  LinkSet link_set_;
  void look_at_links(bool look);  // may throw std::bad_alloc
  bool links_looked_at_ = false;  // the set is one of the engine's sources
  std::list<std::shared_ptr<Link>> links_;
  Finishing<ActiveHandshake> active_handshakes_;
  Finishing<PassiveHandshake> passive_handshakes_;
  std::unordered_map<ConnQual, ListenerEvents*> listeners_;

  // What is over, until no call of it can be under way.
  void sweep();
  std::list<std::shared_ptr<Link>> dead_links_;
  Timer sweep_timer_;
  FileFinder files_;
};

}  // namespace anydat::nic::soft::shm
