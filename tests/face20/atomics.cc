// SPDX-License-Identifier: BSD-3-Clause
// D2-ATOM-4: all atomic operations on a word have one order, whatever asks for them and by whatever way: other
// processes over each wire, some of which have the word's memory mapped, the target's own process over connections to
// itself, and its instructions.
#include <anydat/anydat.h>
#include <dat2/dat_ib_extensions.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "face20/fixture.h"
#include "support/counter.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr auto kBoardRights =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG | int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC});

constexpr std::size_t kAdds = 1000;  // of each who adds
constexpr std::size_t kSwaps = 300;  // that succeed, of each who swaps
constexpr std::size_t kPlaces = 8;

// What lies in the target's region. Each place is one party's, which notes there what it has found in the words.
struct Board {
  struct Place {
    std::array<std::uint64_t, kAdds> added;
    std::array<std::uint64_t, kSwaps> swapped;
  };
  alignas(64) std::uint64_t adds;
  alignas(64) std::uint64_t swaps;
  alignas(64) std::array<Place, kPlaces> places;
};

struct RemoteBoard {
  DAT_UINT64 address;
  DAT_RMR_CONTEXT context;
  DAT_RMR_TRIPLET at(std::size_t offset, std::size_t bytes) const {
    DAT_RMR_TRIPLET triplet{};
    triplet.rmr_context = context;
    triplet.virtual_address = address + offset;
    triplet.segment_length = static_cast<DAT_SEG_LENGTH>(bytes);
    return triplet;
  }
};

// One who adds and swaps, by a connection.
class Asker {
 public:
  explicit Asker(const Wire& wire) : side_(wire), own_(side_.ia, side_.pz, sizeof(Board::Place) + 8), ep_(side_) {}

  void call(DAT_CONN_QUAL qualifier) {
    require(dat_ep_connect(ep_.get(), loopback(), qualifier, 60'000'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }
  void await_connection() { (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED); }

  // Reads some of it until that is a copy in memory: until it is mapped here, which is no more than a matter of time.
  bool becomes_mapped(const RemoteBoard& board) {
    DAT_LMR_TRIPLET segment = own_.triplet(0, 8);
    const DAT_RMR_TRIPLET remote = board.at(offsetof(Board, places), 8);
    return eventually([&] {
      require(dat_ep_post_rdma_read(ep_.get(), 1, &segment, kNoCookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
              "rdma_read");
      (void)expect_completion(side_.request.get());
      return counter(ep_.get(), "rdmas_in_memory") > 0;
    });
  }
  void work(const RemoteBoard& board, std::size_t place) {
    Board::Place found;
    std::uint64_t guess = 0;
    for (std::size_t added = 0, swapped = 0; added < kAdds || swapped < kSwaps;) {
      if (added < kAdds) found.added[added++] = fetch_and_add(board);
      if (swapped == kSwaps) continue;
      const std::uint64_t was = compare_and_swap(board, guess);
      if (was == guess) found.swapped[swapped++] = was;
      guess = was == guess ? guess + 1 : was;
    }
    std::memcpy(own_.bytes().data() + 8, &found, sizeof found);
    DAT_LMR_TRIPLET segment = own_.triplet(8, sizeof found);
    const DAT_RMR_TRIPLET remote = board.at(offsetof(Board, places) + place * sizeof found, sizeof found);
    require(dat_ep_post_rdma_write(ep_.get(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "rdma_write");
    // What was written is seen there by whom this message has reached.
    require(dat_ep_post_send(ep_.get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    (void)expect_completions(side_.request.get(), 2);
  }
  void leave() {
    require(dat_ep_disconnect(ep_.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }

 private:
  std::uint64_t fetch_and_add(const RemoteBoard& board) {
    DAT_LMR_TRIPLET segment = own_.triplet(0, 8);
    DAT_RMR_TRIPLET remote = board.at(offsetof(Board, adds), 8);
    require(dat_ib_post_fetch_and_add(ep_.get(), 1, &segment, kNoCookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
            "fetch_and_add");
    return result();
  }
  std::uint64_t compare_and_swap(const RemoteBoard& board, std::uint64_t guess) {
    DAT_LMR_TRIPLET segment = own_.triplet(0, 8);
    DAT_RMR_TRIPLET remote = board.at(offsetof(Board, swaps), 8);
    require(dat_ib_post_cmp_and_swap(ep_.get(), guess, guess + 1, &segment, kNoCookie, &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG),
            "cmp_and_swap");
    return result();
  }
  std::uint64_t result() {
    const DAT_EVENT event = expect_event(side_.request.get(), static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
    EXPECT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    std::uint64_t value = 0;
    std::memcpy(&value, own_.bytes().data(), sizeof value);
    return value;
  }

  static constexpr DAT_DTO_COOKIE kNoCookie{};
  Side side_;
  Lmr own_;
  Ep ep_;
};

// Arguments: qualifier, address, context, place. Says how many of its Reads were copies in memory, and is told to
// begin.
const Role kAsker("asks for atomic operations", [](RoleContext& context) {
  const auto number = [&](std::size_t i) { return std::stoull(context.arguments.at(i)); };
  const RemoteBoard board{number(1), static_cast<DAT_RMR_CONTEXT>(number(2))};
  Asker asker(context.wire);
  asker.call(number(0));
  asker.await_connection();
  EXPECT_TRUE(number(4) == 0 || asker.becomes_mapped(board));
  context.parent.say("ready");
  context.parent.hear();
  asker.work(board, number(3));
  context.parent.say("done");
  context.parent.hear();
  asker.leave();
});

// Their wires, by name, and the kind of the board's memory.
struct Company {
  const char* name;
  std::vector<std::string> processes;
  std::vector<std::string> within;
  bool shareable;
};
std::string company_name(const testing::TestParamInfo<Company>& info) {
  return info.param.name;
}
std::ostream& operator<<(std::ostream& out, const Company& company) {
  return out << company.name;
}

class Dat2Atomics : public testing::TestWithParam<Company> {
 protected:
  // The adapter takes callers over either wire, whichever they choose.
  Dat2Atomics() : server_({.name = "any", .ia_name = "soft-lo", .env = {}}) {
    if (GetParam().shareable) {
      void* memory = nullptr;
      require(anydat_alloc_shareable(sizeof(Board), &memory), "anydat_alloc_shareable");
      board_ = new (memory) Board{};
    } else {
      board_ = new Board{};
    }
    region_.emplace(server_.ia, server_.pz, std::as_writable_bytes(std::span(board_, 1)), kBoardRights);
  }
  ~Dat2Atomics() override {
    region_.reset();
    if (GetParam().shareable) {
      EXPECT_THAT(anydat_free_shareable(board_), Succeeds());
    } else {
      delete board_;
    }
  }
  RemoteBoard remote() const { return {reinterpret_cast<std::uintptr_t>(board_), region_->rmr_context()}; }
  void accept() {
    const DAT_EVENT request = expect_event(server_.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    endpoints_.emplace_back(server_);
    require(dat_ep_post_recv(endpoints_.back().get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, endpoints_.back().get(), 0, nullptr),
            "dat_cr_accept");
    (void)expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  // What many have found in a word that each changed by 1: every value once.
  static void expect_each_once(std::vector<std::uint64_t> found, const char* what) {
    std::ranges::sort(found);
    std::vector<std::uint64_t> all(found.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_TRUE(found == all) << what;
  }

  Side server_;
  Board* board_;
  std::optional<Lmr> region_;
  std::vector<Ep> endpoints_;
};

using namespace std::string_literals;
INSTANTIATE_TEST_SUITE_P(Companies, Dat2Atomics,
                         testing::Values(Company{"OverSharedMemory", {"shm"s, "shm"s, "shm"s}, {"shm"s}, true},
                                         Company{"OfBothWires", {"shm"s, "tcp"s, "shm_ring"s}, {"shm"s, "tcp"s}, true},
                                         Company{"InOrdinaryMemory", {"shm"s, "tcp"s}, {"shm"s, "tcp"s}, false}),
                         company_name);

TEST_P(Dat2Atomics, OfAllPeersAndTheTargetItselfHaveOneOrder) {
  const RemoteBoard remote = this->remote();
  std::vector<std::unique_ptr<PeerProcess>> processes;
  std::vector<std::unique_ptr<Asker>> askers;
  std::size_t place = 0;
  for (const std::string& wire : GetParam().processes) {
    processes.push_back(std::make_unique<PeerProcess>(
        "asks for atomic operations", wire_by_name(wire),
        std::vector{std::to_string(server_.listen()), std::to_string(remote.address), std::to_string(remote.context),
                    std::to_string(place++), std::to_string(GetParam().shareable && wire == "shm" ? 1 : 0)}));
    accept();
    EXPECT_EQ(processes.back()->channel().hear(), "ready");
  }
  for (const std::string& wire : GetParam().within) {
    askers.push_back(std::make_unique<Asker>(wire_by_name(wire)));
    askers.back()->call(server_.listen());
    accept();
    askers.back()->await_connection();
  }
  std::vector<std::uint64_t> added;
  std::vector<std::uint64_t> swapped;
  {
    for (const auto& process : processes) process->channel().say("begin");
    std::vector<std::jthread> threads;
    for (const auto& asker : askers) {
      threads.emplace_back([&asker = *asker, &remote, own = place++] {
        try {
          asker.work(remote, own);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    // The target's program, all the while.
    const std::jthread own([&](const std::stop_token& over) {
      const std::atomic_ref<std::uint64_t> adds(board_->adds);
      const std::atomic_ref<std::uint64_t> swaps(board_->swaps);
      do {
        added.push_back(adds.fetch_add(1));
        std::uint64_t guess = swaps.load();
        while (!swaps.compare_exchange_weak(guess, guess + 1)) {
        }
        swapped.push_back(guess);
        std::this_thread::yield();
      } while (!over.stop_requested() && added.size() < 1'000'000);
    });
    for (std::jthread& thread : threads) thread.join();
    for (const auto& process : processes) EXPECT_EQ(process->channel().hear(), "done");
    (void)expect_completions(server_.recv.get(), static_cast<int>(place));
  }
  for (const Board::Place& found : std::span(board_->places).first(place)) {
    added.insert(added.end(), found.added.begin(), found.added.end());
    swapped.insert(swapped.end(), found.swapped.begin(), found.swapped.end());
  }
  EXPECT_EQ(board_->adds, added.size());
  EXPECT_EQ(board_->swaps, swapped.size());
  expect_each_once(added, "fetch-and-add");
  expect_each_once(swapped, "compare-and-swap");
  for (const auto& process : processes) {
    process->channel().say("leave");
    EXPECT_EQ(process->wait_exit(), 0) << "what it says stands above";
  }
  for (const auto& asker : askers) asker->leave();
}

}  // namespace
}  // namespace anydat::test
