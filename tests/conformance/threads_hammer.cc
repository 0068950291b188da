// SPDX-License-Identifier: BSD-3-Clause
// MT-1 to MT-3: nine threads make all kinds of calls on the same objects at once, and chapter 7.2 of part 2 holds.
//
// ANYDAT_HAMMER_MESSAGES: how many on each lasting connection (default 150).
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "rmr_fixture.h"
#include "srq_fixture.h"
#include "support/properties.h"
#include "support/threads.h"

namespace anydat::test {
namespace {

constexpr int kLasting = 6;   // connections
constexpr int kBuffers = 32;  // of the SRQ
constexpr std::size_t kBytes = 20'000;
constexpr std::uint32_t kWindow = 4;  // messages of one connection on their way
constexpr int kShort = 8;             // messages on a connection that comes and goes
constexpr std::size_t kRemote = 12'000;

int messages_per_connection() {
  const char* text = std::getenv("ANYDAT_HAMMER_MESSAGES");
  return text != nullptr ? std::atoi(text) : 150;
}

struct Header {
  std::uint32_t connection;
  std::uint32_t number;
};

// What a cookie of the client means.
enum class Work : std::uint32_t { message, rdma };
DAT_DTO_COOKIE client_cookie(Work work, std::uint32_t connection) {
  return cookie(static_cast<DAT_UINT64>(work) << 32 | connection);
}

std::size_t length_of(std::uint32_t connection, std::uint32_t number) {
  std::minstd_rand random(connection * 7919 + number * 31 + 1);
  random.discard(2);
  // Most are small; those of more than 8 KiB take another way.
  return sizeof(Header) + random() % (random() % 4 == 0 ? kBytes - sizeof(Header) : 200);
}

class ThreadsHammer : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < kLasting; ++i) {
      lasting_.push_back(connect(recv_, request_));
      lasting_windows_[i].cookie = client_cookie(Work::message, i);
    }
    for (int i = 0; i < kBuffers; ++i) {
      posted_[static_cast<std::size_t>(i)] = true;
      post(i);
    }
  }

  Connection connect(const Evd& recv, const Evd& request) {
    Connection pair{
        .server = Ep(server_.ia, server_.pz,
                     {.recv = recv.get(), .request = server_.request.get(), .connect = server_.connect.get()}, srq_,
                     default_srq_ep_attr()),
        .client = Ep(client_.ia, client_.pz,
                     {.recv = client_.recv.get(), .request = request.get(), .connect = client_.connect.get()},
                     default_ep_attr())};
    connect_pair(server_, pair.server.get(), pair.client.get());
    return pair;
  }

  void post(int buffer) { buffers_.post(srq_, buffer, 1); }

  // ---- the threads. Each but the reapers runs until it has done enough, or until the others have.

  // Messages on half of the lasting connections each.
  void send(std::uint32_t first) {
    const int count = messages_per_connection();
    for (int number = 0; number < count; ++number) {
      for (std::uint32_t i = first; i < kLasting; i += 2) {
        send_one(lasting_[i].client, lasting_windows_[i], i, static_cast<std::uint32_t>(number));
      }
    }
    if (--senders_left_ == 0) {
      lasting_done_ = true;
    }
  }

  struct Window {
    DAT_DTO_COOKIE cookie{};
    std::atomic<std::uint32_t> completed{0};
    std::uint32_t sent = 0;
  };

  void send_one(const Ep& ep, Window& window, std::uint32_t connection, std::uint32_t number) {
    // Its place in the memory is free once the message that was there has completed.
    wait_until([&] { return window.sent - window.completed < kWindow; });
    const std::size_t place = (std::min<std::size_t>(connection, kLasting) * kWindow + number % kWindow) * kBytes;
    const std::size_t length = length_of(connection, number);
    const Header header{connection, number};
    std::memcpy(source_.bytes().data() + place, &header, sizeof header);
    fill_pattern(source_.bytes().subspan(place + sizeof header, length - sizeof header), connection + number);
    DAT_LMR_TRIPLET segment = source_.triplet(place, length);
    ++window.sent;
    const auto flags = number % 5 == 0 ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : DAT_COMPLETION_DEFAULT_FLAG;
    require(dat_ep_post_send(ep.get(), 1, &segment, window.cookie, flags), "dat_ep_post_send");
  }

  // INV-2, INV-3, INV-5: each buffer comes back once, each connection's messages in order and unchanged.
  void reap_receives() {
    std::map<std::uint32_t, std::uint32_t> expected;
    const int end = kLasting * messages_per_connection();
    for (int received = 0;;) {
      // What a connection that is over has left behind is on the EVD by then.
      const bool last = received == end && short_ones_done_;
      const auto event = wait_event(recv_.get(), std::chrono::milliseconds(last ? 0 : 20));
      if (!event && last) {
        return;
      }
      if (!event) {
        require_progress();
        continue;
      }
      ++progress_;
      const DAT_DTO_COMPLETION_EVENT_DATA& dto = event->event_data.dto_completion_event_data;
      const auto buffer = static_cast<int>(dto.user_cookie.as_64);
      ASSERT_TRUE(std::exchange(posted_[static_cast<std::size_t>(buffer)], false))
          << "buffer " << buffer << " came back twice";
      if (dto.status == DAT_DTO_SUCCESS) {
        const auto message = buffers_[buffer].first(dto.transfered_length);
        Header header{};
        std::memcpy(&header, message.data(), sizeof header);
        ASSERT_EQ(header.number, expected[header.connection]++) << "of connection " << header.connection;
        ASSERT_EQ(message.size(), length_of(header.connection, header.number));
        ASSERT_TRUE(has_pattern(message.subspan(sizeof header), header.connection + header.number));
        if (header.connection < kLasting) {
          ++received;
        } else {
          ++received_of(header.connection);
        }
      } else {
        ASSERT_EQ(dto.status, DAT_DTO_ERR_FLUSHED);
      }
      posted_[static_cast<std::size_t>(buffer)] = true;
      post(buffer);
    }
  }

  std::atomic<std::uint32_t>& received_of(std::uint32_t name) { return short_received_[name % short_received_.size()]; }

  void reap_requests() {
    while (!all_requests_done()) {
      auto event = poll_event(request_.get());
      if (!event) {
        event = wait_event(request_.get(), std::chrono::milliseconds(5));
      }
      if (!event) {
        require_progress();
        continue;
      }
      ++progress_;
      const DAT_DTO_COMPLETION_EVENT_DATA& dto = event->event_data.dto_completion_event_data;
      ASSERT_EQ(dto.status, DAT_DTO_SUCCESS);
      const auto connection = static_cast<std::uint32_t>(dto.user_cookie.as_64);
      const auto work = static_cast<Work>(dto.user_cookie.as_64 >> 32);
      ++(work == Work::rdma ? rdma_completed_[connection] : lasting_windows_[connection].completed);
    }
  }

  bool all_requests_done() {
    if (!rdma_done_) {
      return false;
    }
    for (const Window& window : lasting_windows_) {
      if (window.completed != static_cast<std::uint32_t>(messages_per_connection())) {
        return false;
      }
    }
    return true;
  }

  // INV-4: connections that come, carry a few messages and end, in order or abruptly, each in one event at each side.
  void connect_and_disconnect() {
    const Evd request(client_.ia, DAT_EVD_DTO_FLAG);
    for (std::uint32_t round = 0; !lasting_done_ || round < 4; ++round) {
      const Connection pair = connect(recv_, request);
      const std::uint32_t name = kLasting + round;
      Window window;
      received_of(name) = 0;
      for (std::uint32_t number = 0; number < kShort; ++number) {
        if (window.sent - window.completed == kWindow) {
          expect_completion(request.get());
          ++window.completed;
        }
        send_one(pair.client, window, name, number);
      }
      const bool abruptly = round % 2 == 0;
      const Ep& who = round % 4 == 0 ? pair.server : pair.client;
      require(dat_ep_disconnect(who.get(), abruptly ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG),
              "dat_ep_disconnect");
      expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      expect_event(client_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      EXPECT_FALSE(poll_event(server_.connect.get()));
      EXPECT_FALSE(poll_event(client_.connect.get()));
      if (!abruptly) {
        wait_until([&] { return received_of(name) == kShort; });
      }
      drain(request.get());
      ++progress_;
      require(dat_ep_reset(pair.client.get()), "dat_ep_reset");
    }
    short_ones_done_ = true;
  }

  // INV-6: an event for a setting at most.
  void tinker_with_the_srq() {
    std::minstd_rand random(3);
    int settings = 0;
    int fired = 0;
    const DAT_COUNT watermark = watermarks_supported(server_.ia) ? 40 : DAT_WATERMARK_INFINITE;
    while (!lasting_done_) {
      const Ep& ep = lasting_[random() % kLasting].server;
      switch (random() % 5) {
        case 0:
          require(dat_srq_resize(srq_.get(), kBuffers + static_cast<DAT_COUNT>(random() % 40)), "dat_srq_resize");
          break;
        case 1:
          require(dat_srq_set_lw(srq_.get(), static_cast<DAT_COUNT>(random() % kBuffers)), "dat_srq_set_lw");
          ++settings;
          break;
        case 2:
          require(dat_ep_set_watermark(ep.get(), watermark, DAT_WATERMARK_INFINITE), "dat_ep_set_watermark");
          break;
        case 3:
          EXPECT_TRUE(held(ep).buffers >= 0 || held(ep).buffers == DAT_VALUE_UNKNOWN);
          break;
        default: {
          // SRQ-ACC-4, SRQ-ACC-5
          const Counts now = counts(srq_);
          EXPECT_LE(now.available, now.outstanding);
          EXPECT_LE(now.outstanding, kBuffers);
        }
      }
      fired += drain(server_.ia.async_evd());
    }
    fired += drain(server_.ia.async_evd());
    EXPECT_LE(fired, settings);
  }

  void query_and_resize() {
    std::minstd_rand random(5);
    const Cno cno(server_.ia);
    while (!lasting_done_) {
      const Connection& pair = lasting_[random() % kLasting];
      const Evd& evd = random() % 2 == 0 ? recv_ : server_.connect;
      DAT_EP_STATE state{};
      DAT_BOOLEAN recv_idle{}, request_idle{};
      DAT_LMR_PARAM lmr{};
      DAT_EVD_PARAM evd_param{};
      switch (random() % 8) {
        case 0:
          EXPECT_EQ(pair.client.query().ep_state, DAT_EP_STATE_CONNECTED);
          break;
        case 1:
          EXPECT_THAT(dat_ep_get_status(pair.server.get(), &state, &recv_idle, &request_idle), Succeeds());
          break;
        case 2:
          EXPECT_THAT(dat_lmr_query(source_.get(), DAT_LMR_FIELD_ALL, &lmr), Succeeds());
          break;
        case 3:
          EXPECT_THAT(dat_evd_query(evd.get(), DAT_EVD_FIELD_ALL, &evd_param), Succeeds());
          break;
        case 4:
          // Refused while a thread waits there.
          EXPECT_THAT(dat_evd_resize(evd.get(), 512 + static_cast<DAT_COUNT>(random() % 512)),
                      testing::AnyOf(Succeeds(), HasType(DAT_INVALID_STATE)));
          break;
        case 5:
          EXPECT_THAT(dat_evd_modify_cno(evd.get(), random() % 2 == 0 ? cno.get() : DAT_HANDLE_NULL), Succeeds());
          break;
        case 6:
          EXPECT_THAT(random() % 2 == 0 ? dat_evd_disable(evd.get()) : dat_evd_enable(evd.get()), Succeeds());
          break;
        default:
          EXPECT_EQ(server_.ia.attributes().max_srqs > 0, true);
      }
    }
    for (const Evd* evd : {&recv_, &server_.connect}) {
      EXPECT_THAT(dat_evd_modify_cno(evd->get(), DAT_HANDLE_NULL), Succeeds());
    }
  }

  void make_and_free() {
    while (!lasting_done_) {
      const Pz pz(server_.ia);
      const Lmr first(server_.ia, pz, kBytes);
      const Evd evd(server_.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
      const Srq srq(server_.ia, pz, 8);
      const Ep ep(server_.ia, pz, {.recv = evd.get(), .request = evd.get(), .connect = evd.get()}, srq,
                  default_srq_ep_attr());
      DAT_LMR_TRIPLET segment = first.triplet();
      require(dat_srq_post_recv(srq.get(), 1, &segment, {}), "dat_srq_post_recv");
      const Lmr second(server_.ia, server_.pz, kBytes);
      EXPECT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), HasType(DAT_INVALID_STATE));
    }
  }

  // RDMA beside the Sends of another thread on the same endpoints, and windows that are bound and freed. Each endpoint
  // has memory of its own for it at both sides.
  void use_remote_memory() {
    std::minstd_rand random(7);
    const Lmr local(client_.ia, client_.pz, kLasting * kRemote);
    const auto idle = [this](std::uint32_t connection) {
      return rdma_posted_[connection] == rdma_completed_[connection];
    };
    for (std::uint32_t round = 0; !lasting_done_; ++round) {
      const std::uint32_t connection = round % kLasting;
      wait_until([&] { return idle(connection); });
      const std::size_t place = connection * kRemote;
      const std::size_t length = 1 + random() % (kRemote - 1);
      DAT_LMR_TRIPLET segment = local.triplet(place, length);
      DAT_RMR_TRIPLET remote = remote_triplet(remote_.rmr_context(), remote_.bytes().data() + place, length);
      const auto post = random() % 2 == 0 ? dat_ep_post_rdma_write : dat_ep_post_rdma_read;
      ++rdma_posted_[connection];
      require(post(lasting_[connection].client.get(), 1, &segment, client_cookie(Work::rdma, connection), &remote,
                   DAT_COMPLETION_DEFAULT_FLAG),
              "RDMA");
      const Rmr window(server_.pz);
      DAT_RMR_CONTEXT context = 0;
      require(try_bind(window, remote_.triplet(place, length), kRemoteBoth, lasting_[connection].server, &context),
              "dat_rmr_bind");
      expect_bind(server_.request.get());
    }
    for (std::uint32_t connection = 0; connection < kLasting; ++connection) {
      wait_until([&] { return idle(connection); });
    }
    rdma_done_ = true;
  }

  // ---- together

  // Throws when nothing has moved for long.
  void require_progress() {
    thread_local std::uint64_t seen = 0;
    thread_local auto since = std::chrono::steady_clock::now();
    const auto now = std::chrono::steady_clock::now();
    if (const std::uint64_t moved = progress_; moved != seen) {
      seen = moved;
      since = now;
    }
    if (given_up_ || now - since > patience()) {
      throw std::runtime_error("nothing moves");
    }
  }
  void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      require_progress();
      std::this_thread::yield();
    }
  }

  void run(const std::vector<std::function<void()>>& threads) {
    in_threads(static_cast<int>(threads.size()), [&](int index) {
      try {
        threads[static_cast<std::size_t>(index)]();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "thread " << index << ": " << error.what();
      }
      if (HasFailure()) {
        given_up_ = lasting_done_ = true;
      }
    });
  }

  class Cno : public Owner<dat_cno_free> {
   public:
    explicit Cno(const Ia& ia) {
      require(dat_cno_create(ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, out()), "dat_cno_create");
    }
  };

  Side server_{GetParam()};
  Side client_{GetParam()};
  Evd recv_{server_.ia, DAT_EVD_DTO_FLAG, 1024};
  Evd request_{client_.ia, DAT_EVD_DTO_FLAG, 1024};
  Buffers buffers_{server_.ia, server_.pz, kBuffers, kBytes};
  Lmr source_{client_.ia, client_.pz, (kLasting + 1) * kWindow* kBytes};
  Lmr remote_{server_.ia, server_.pz, kLasting* kRemote};
  Srq srq_{server_.ia, server_.pz, kBuffers};
  std::vector<Connection> lasting_;
  std::array<Window, kLasting> lasting_windows_;
  std::array<bool, kBuffers> posted_{};                          // the reaper's
  std::array<std::atomic<std::uint32_t>, 64> short_received_{};  // messages, by connection
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<int> senders_left_{2};
  std::array<std::uint32_t, kLasting> rdma_posted_{};
  std::array<std::atomic<std::uint32_t>, kLasting> rdma_completed_{};
  std::atomic<bool> lasting_done_{false};
  std::atomic<bool> short_ones_done_{false};
  std::atomic<bool> rdma_done_{false};
  std::atomic<bool> given_up_{false};
};

TEST_P(ThreadsHammer, ManyThreadsOnTheSameObjects) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server_.ia)
  // INV-1 to INV-8; the death of a peer (INV-7) is the stress test's. Thread safety is ours to give: MT-1, MT-2, MT-3.
  ASSERT_EQ(server_.ia.provider().is_thread_safe, DAT_TRUE);
  run({
      [this] { send(0); },
      [this] { send(1); },
      [this] { reap_receives(); },
      [this] { reap_requests(); },
      [this] { connect_and_disconnect(); },
      [this] { tinker_with_the_srq(); },
      [this] { query_and_resize(); },
      [this] { make_and_free(); },
      [this] { use_remote_memory(); },
  });
  EXPECT_EQ(counts(srq_), (Counts{.available = kBuffers, .outstanding = kBuffers}));
  lasting_.clear();
  EXPECT_EQ(counts(srq_), (Counts{.available = kBuffers, .outstanding = kBuffers}));
}

ANYDAT_OVER_ALL_WIRES(ThreadsHammer);

}  // namespace
}  // namespace anydat::test
