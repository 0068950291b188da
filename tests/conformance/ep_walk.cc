// SPDX-License-Identifier: BSD-3-Clause
// A long walk through the states of endpoints: calls chosen by chance, most of them in states that refuse them, beside
// a model that is table 2.2 of the rules written down again. After every call each endpoint is where the model says,
// has what was posted to it, and no EVD has an event that the model does not expect.
//
// ANYDAT_TEST_SEED: repeats a walk.
#include <array>
#include <deque>
#include <initializer_list>
#include <list>
#include <memory>

#include "ep_fixture.h"
#include "ep_states.h"
#include "random_walk.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class EpWalk : public testing::TestWithParam<Wire> {
 protected:
  static constexpr int kNodes = 4;  // on each side
  static constexpr int kSteps = 6000;
  static constexpr std::size_t kPostedMost = 16;  // which any endpoint has room for
  static constexpr std::size_t kBytes = 64;

  enum class Asked { public_point, provider_point, reserved_point };  // by a client that is connected

  struct Node {
    explicit Node(Side& at) : side(at), evds(at), ep(at.ia, at.pz, evds, default_ep_attr()) {}
    // Of an endpoint that the provider has made: it knows nothing of zone and EVDs yet.
    Node(Side& at, DAT_EP_HANDLE made)
        : side(at), evds(at), configured(false), state(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      static_cast<Owner<dat_ep_free>&>(ep) = Owner<dat_ep_free>(made);
    }
    Side& side;
    OwnEvds evds;
    Ep ep;
    bool configured = true;
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    Node* peer = nullptr;  // when connected
    Asked asked = Asked::reserved_point;
    std::deque<DAT_UINT64> posted;  // receives
  };
  struct Request {
    DAT_CR_HANDLE handle;
    Node* caller;  // null: it has given up
    Node* own;     // the endpoint that the request names, or null
    Asked at;
  };
  struct Reserved {
    std::unique_ptr<Rsp> rsp;
    Node* node;  // null once the request has come
  };

  EpWalk() {
    for (int i = 0; i < kNodes; ++i) {
      servers_.push_back(std::make_unique<Node>(server_));
      clients_.push_back(std::make_unique<Node>(client_));
    }
  }

  // ---- what chance chooses

  std::size_t below(std::size_t limit) { return walk_.below(limit); }
  Node& any_client() { return *clients_[below(kNodes)]; }
  Node& any_server() { return *servers_[below(servers_.size())]; }
  Node& anybody() { return below(2) == 0 ? any_client() : any_server(); }
  Request* any_request() {
    if (requests_.empty()) {
      return nullptr;
    }
    return &*std::next(requests_.begin(), static_cast<std::ptrdiff_t>(below(requests_.size())));
  }

  // ---- what the model expects

  static void expect_refused(const Node& node, DAT_RETURN rc) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(rc, HasSubtype(state_subtype(node.state)));
  }

  // The connection or the attempt is over: one event, and the receives are flushed in order (EP-SM-25).
  static void ended(Node& node, DAT_EVENT_NUMBER event) {
    node.state = DAT_EP_STATE_DISCONNECTED;
    node.peer = nullptr;
    expect_connection_event(node.evds.connect.get(), event, node.ep.get());
    for (const DAT_UINT64 number : node.posted) {
      EXPECT_EQ(expect_completion(node.evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, number);
    }
    node.posted.clear();
  }

  void caller_gone(const Node& caller) {
    for (Request& request : requests_) {
      if (request.caller == &caller) {
        request.caller = nullptr;
      }
    }
  }

  void arrived(Node& caller, Node* reserved, Asked at) {
    caller.state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
    const auto request = expect_request(server_.requests.get());
    if (reserved) {
      reserved->state = DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
    }
    requests_.push_back({request.cr_handle, &caller, reserved, at});
  }

  void arrived_with_endpoint(Node& caller) {
    arrived(caller, nullptr, Asked::provider_point);
    Request& request = requests_.back();
    servers_.push_back(std::make_unique<Node>(server_, query_request(request.handle).local_ep_handle));
    request.own = servers_.back().get();
  }

  // CR-REJ-3, CR-REJ-4: the endpoint of a request that is not accepted.
  void give_back(Node& node) {
    if (node.state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) {
      node.state = DAT_EP_STATE_UNCONNECTED;
      return;
    }
    EXPECT_THAT(dat_ep_reset(node.ep.release()), HasType(DAT_INVALID_HANDLE));
    std::erase_if(servers_, [&](const auto& other) { return other.get() == &node; });
  }

  void drop(const Request& request) {
    requests_.remove_if([&](const Request& other) { return &other == &request; });
  }

  void expect_agreement() {
    for (const auto& side : {&servers_, &clients_}) {
      for (const auto& node : *side) {
        DAT_EP_STATE state{};
        DAT_BOOLEAN recv_idle{};
        DAT_BOOLEAN request_idle{};
        ASSERT_THAT(dat_ep_get_status(node->ep.get(), &state, &recv_idle, &request_idle), Succeeds());
        EXPECT_STREQ(state_name(state), state_name(node->state));
        EXPECT_EQ(recv_idle == DAT_TRUE, node->posted.empty());
        EXPECT_EQ(request_idle, DAT_TRUE);
        DAT_COUNT buffers = -1;
        ASSERT_THAT(dat_ep_recv_query(node->ep.get(), &buffers, nullptr), Succeeds());
        EXPECT_EQ(buffers, static_cast<DAT_COUNT>(node->posted.size()));
        for (const Evd* evd : {&node->evds.recv, &node->evds.request, &node->evds.connect}) {
          if (const auto event = poll_event(evd->get())) {
            ADD_FAILURE() << "an event nobody expected: " << event_name(event->event_number);
          }
        }
      }
    }
    EXPECT_FALSE(poll_event(server_.requests.get())) << "a request nobody made";
  }

  // ---- calls

  void connect() {
    Node& caller = any_client();
    Reserved* reserved = below(3) == 0 && !reserved_.empty() ? &reserved_[below(reserved_.size())] : nullptr;
    const bool provider_makes = !reserved && below(3) == 0 && servers_.size() < 3 * kNodes;
    const DAT_RETURN rc = try_connect(caller.ep.get(), reserved         ? reserved->rsp->qualifier()
                                                       : provider_makes ? provider_.qualifier()
                                                                        : server_.listen());
    if (caller.state != DAT_EP_STATE_UNCONNECTED) {
      return expect_refused(caller, rc);
    }
    ASSERT_THAT(rc, Succeeds());
    if (reserved && !reserved->node) {
      return ended(caller, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);  // RSP-CREATE-6
    }
    if (provider_makes) {
      return arrived_with_endpoint(caller);
    }
    arrived(caller, reserved ? reserved->node : nullptr, reserved ? Asked::reserved_point : Asked::public_point);
    if (reserved) {
      reserved->node = nullptr;
    }
  }

  void dup_connect() {
    Node& caller = any_client();
    const Node& original = any_client();
    const DAT_RETURN rc =
        dat_ep_dup_connect(caller.ep.get(), original.ep.get(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT);
    if (caller.state != DAT_EP_STATE_UNCONNECTED || original.state != DAT_EP_STATE_CONNECTED) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
      return;
    }
    ASSERT_THAT(rc, Succeeds());
    if (original.asked == Asked::public_point) {
      arrived(caller, nullptr, Asked::public_point);
    } else if (original.asked == Asked::provider_point) {
      arrived_with_endpoint(caller);
    } else {
      ended(caller, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);  // the reserved service point has had its request
    }
  }

  void accept() {
    Request* request = any_request();
    if (!request || (!request->caller && !confirmed_accepts_)) {
      return;
    }
    Node& node = request->own && below(5) != 0 ? *request->own : any_server();
    const bool names_own = request->own == &node;
    if (names_own && !node.configured && below(4) != 0) {
      configure(node);
    }
    const DAT_RETURN rc = dat_cr_accept(request->handle, names_own ? DAT_HANDLE_NULL : node.ep.get(), 0, nullptr);
    if ((request->own && !names_own) || (names_own && !node.configured)) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));  // CR-ACC-7, CR-ACC-9
      return;
    }
    if (!names_own && node.state != DAT_EP_STATE_UNCONNECTED) {
      return expect_refused(node, rc);
    }
    ASSERT_THAT(rc, Succeeds());
    if (!request->caller) {
      ended(node, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    } else {
      for (Node* each : {&node, request->caller}) {
        expect_connection_event(each->evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, each->ep.get());
        each->state = DAT_EP_STATE_CONNECTED;
        ++established_[static_cast<std::size_t>(request->at)];
      }
      node.peer = request->caller;
      node.peer->peer = &node;
      node.peer->asked = request->at;
    }
    drop(*request);
  }

  void reject() {
    Request* request = any_request();
    if (!request) {
      return;
    }
    ASSERT_THAT(dat_cr_reject(request->handle), Succeeds());
    if (request->caller) {
      ended(*request->caller, DAT_CONNECTION_EVENT_PEER_REJECTED);
    }
    if (request->own) {
      give_back(*request->own);
    }
    drop(*request);
  }

  void hand_off() {
    Request* request = any_request();
    if (!request) {
      return;
    }
    ASSERT_THAT(dat_cr_handoff(request->handle, server_.listen()), Succeeds());
    request->handle = expect_request(server_.requests.get()).cr_handle;
    request->at = Asked::public_point;
    if (request->own) {
      give_back(*request->own);
      request->own = nullptr;
    }
  }

  void disconnect() {
    Node& node = anybody();
    const DAT_RETURN rc =
        dat_ep_disconnect(node.ep.get(), below(2) == 0 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG);
    switch (node.state) {
      case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
        ASSERT_THAT(rc, Succeeds());
        caller_gone(node);
        return ended(node, DAT_CONNECTION_EVENT_DISCONNECTED);
      case DAT_EP_STATE_CONNECTED: {
        ASSERT_THAT(rc, Succeeds());
        Node& peer = *node.peer;
        ended(node, DAT_CONNECTION_EVENT_DISCONNECTED);
        return ended(peer, DAT_CONNECTION_EVENT_DISCONNECTED);
      }
      case DAT_EP_STATE_DISCONNECTED:
        EXPECT_THAT(rc, Succeeds());
        return;
      default:
        expect_refused(node, rc);
    }
  }

  void reset() {
    Node& node = anybody();
    const DAT_RETURN rc = dat_ep_reset(node.ep.get());
    if (node.state != DAT_EP_STATE_UNCONNECTED && node.state != DAT_EP_STATE_DISCONNECTED) {
      return expect_refused(node, rc);
    }
    ASSERT_THAT(rc, Succeeds());
    node.state = DAT_EP_STATE_UNCONNECTED;
  }

  void free_and_make_anew() {
    Node& node = anybody();
    const DAT_RETURN rc = node.ep.free();
    if (node.state == DAT_EP_STATE_RESERVED || node.state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
        node.state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      return expect_refused(node, rc);
    }
    ASSERT_THAT(rc, Succeeds());
    caller_gone(node);
    if (node.peer) {
      ended(*node.peer, DAT_CONNECTION_EVENT_DISCONNECTED);
      node.peer = nullptr;
    }
    while (poll_event(node.evds.recv.get())) {  // EP-FREE-4: its receives may come back or not
    }
    node.posted.clear();
    node.state = DAT_EP_STATE_UNCONNECTED;
    node.ep = Ep(node.side.ia, node.side.pz, node.evds, default_ep_attr());
  }

  void reserve() {
    Node& node = any_server();
    if (node.state != DAT_EP_STATE_UNCONNECTED) {
      DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
      return expect_refused(node, dat_rsp_create(server_.ia.get(), unused_qualifier(server_), node.ep.get(),
                                                 server_.requests.get(), &rsp));
    }
    reserved_.push_back({std::make_unique<Rsp>(server_, node.ep.get()), &node});
    node.state = DAT_EP_STATE_RESERVED;
  }

  void free_reserved() {
    if (reserved_.empty()) {
      return;
    }
    const auto chosen = reserved_.begin() + static_cast<std::ptrdiff_t>(below(reserved_.size()));
    ASSERT_THAT(chosen->rsp->free(), Succeeds());
    if (chosen->node) {
      chosen->node->state = DAT_EP_STATE_UNCONNECTED;
    }
    reserved_.erase(chosen);
  }

  void post_recv() {
    Node& node = anybody();
    if (node.posted.size() == kPostedMost) {
      return;
    }
    DAT_LMR_TRIPLET segment = memory_of(node).triplet(0, kBytes);
    const DAT_RETURN rc =
        dat_ep_post_recv(node.ep.get(), 1, &segment, cookie(++last_number_), DAT_COMPLETION_DEFAULT_FLAG);
    if (!node.configured) {
      EXPECT_THAT(rc, HasType(DAT_PROTECTION_VIOLATION));  // note 3 of the table
      return;
    }
    ASSERT_THAT(rc, Succeeds());
    if (node.state == DAT_EP_STATE_DISCONNECTED) {
      EXPECT_EQ(expect_completion(node.evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, last_number_);
    } else {
      node.posted.push_back(last_number_);
    }
  }

  void post_send() {
    Node& node = anybody();
    if (node.peer && node.peer->posted.empty()) {
      return;  // it would wait
    }
    DAT_LMR_TRIPLET segment = memory_of(node).triplet(kBytes, kBytes);
    const DAT_RETURN rc =
        dat_ep_post_send(node.ep.get(), 1, &segment, cookie(++last_number_), DAT_COMPLETION_DEFAULT_FLAG);
    if (node.state == DAT_EP_STATE_CONNECTED) {
      ASSERT_THAT(rc, Succeeds());
      EXPECT_EQ(expect_completion(node.evds.request.get()).user_cookie.as_64, last_number_);
      EXPECT_EQ(expect_completion(node.peer->evds.recv.get()).user_cookie.as_64, node.peer->posted.front());
      node.peer->posted.pop_front();
    } else if (node.state == DAT_EP_STATE_DISCONNECTED) {
      ASSERT_THAT(rc, Succeeds());
      EXPECT_EQ(expect_completion(node.evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, last_number_);
    } else {
      expect_refused(node, rc);
    }
  }

  void modify() { configure(anybody()); }

  void configure(Node& node) {
    DAT_EP_PARAM param{};
    param.pz_handle = node.side.pz.get();
    param.recv_evd_handle = node.evds.recv.get();
    param.request_evd_handle = node.evds.request.get();
    param.connect_evd_handle = node.evds.connect.get();
    const DAT_RETURN rc = dat_ep_modify(node.ep.get(),
                                        DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                            DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                                        &param);
    if (node.state != DAT_EP_STATE_UNCONNECTED && node.state != DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      return expect_refused(node, rc);
    }
    ASSERT_THAT(rc, Succeeds());
    node.configured = true;
  }

  void walk() {
    const std::initializer_list<RandomWalk::Call<EpWalk>> calls = {
        {&EpWalk::connect, "connect", 6},
        {&EpWalk::dup_connect, "dup_connect", 3},
        {&EpWalk::accept, "accept", 8},
        {&EpWalk::reject, "reject", 1},
        {&EpWalk::hand_off, "hand off", 2},
        {&EpWalk::disconnect, "disconnect", 2},
        {&EpWalk::reset, "reset", 8},
        {&EpWalk::free_and_make_anew, "free", 1},
        {&EpWalk::reserve, "reserve", 3},
        {&EpWalk::free_reserved, "free reserved", 2},
        {&EpWalk::post_recv, "post receive", 6},
        {&EpWalk::post_send, "post send", 6},
        {&EpWalk::modify, "modify", 3},
    };
    walk_.go(*this, kSteps, calls, &EpWalk::expect_agreement);
    // A request without an answer goes with the instance, but its endpoint has to be free to be freed.
    while (Request* request = any_request()) {
      EXPECT_THAT(dat_cr_reject(request->handle), Succeeds());
      if (request->own) {
        give_back(*request->own);
      }
      drop(*request);
    }
    reserved_.clear();
  }

  Lmr& memory_of(const Node& node) { return &node.side == &server_ ? server_memory_ : client_memory_; }

  Side server_{GetParam()};
  const bool confirmed_accepts_ = provider_attribute(server_.ia, "ANYDAT_ACCEPT_COMPLETES") == "confirmed";
  Side client_{GetParam()};
  AnyPsp provider_{server_.ia, server_.requests.get(), DAT_PSP_PROVIDER_FLAG};
  Lmr server_memory_{server_.ia, server_.pz, 2 * kBytes};
  Lmr client_memory_{client_.ia, client_.pz, 2 * kBytes};
  std::vector<std::unique_ptr<Node>> servers_;
  std::vector<std::unique_ptr<Node>> clients_;
  std::list<Request> requests_;
  std::vector<Reserved> reserved_;
  RandomWalk walk_;
  std::array<int, 3> established_{};  // by where the client asked
  DAT_UINT64 last_number_ = 0;
};

TEST_P(EpWalk, EveryCallDoesWhatTheTableSays) {
  // EP-SM-4, EP-SM-22, EP-SM-23, EP-SM-24, EP-SM-25, EP-SM-27, GEN-6, EP-STATUS-2, EP-RQ-17, EP-RESET-2, CONN-SEQ-16
  SCOPED_TRACE(walk_.how_to_repeat());
  walk();
  EXPECT_GT(established_[0] + established_[1] + established_[2], 20) << "the walk has not come far";
}

ANYDAT_OVER_ALL_WIRES(EpWalk);

}  // namespace
}  // namespace anydat::test
