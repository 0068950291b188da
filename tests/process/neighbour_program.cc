// SPDX-License-Identifier: BSD-3-Clause
// What a neighbour does, in its own process, when the test tells it to.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "absent_memory.h"
#include "circumstances.h"
#include "neighbour.h"
#include "neighbour_network.h"
#include "payload.h"
#include "support/child.h"
#include "support/dat_fixture.h"
#include "taken_descriptors.h"

namespace anydat::test {
namespace {

constexpr std::byte kFilled{0xEE};
constexpr int kChannel = 3;  // to the test
constexpr const char* kLevelVariable = "ANYDAT_TEST_NEIGHBOUR_LEVEL";

// In the same place in every program that this one executes without randomized addresses, and zero there at first.
alignas(4096) std::array<std::byte, kNeighbourBytes> memory;

std::promise<void> main_thread_may_end;

TakenDescriptors taken_descriptors(kChannel);

class Player {
 public:
  explicit Player(RoleContext& context) : context_(context) {}

  std::string take_descriptors(std::istream& in) {
    std::string kind;
    in >> kind;
    taken_descriptors.take(kind);
    return {};
  }
  std::string untouched(std::istream&) { return taken_descriptors.untouched(); }

  std::string untouched_in_a_child(std::istream&) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(taken_descriptors.untouched() == "yes" ? 0 : 1);
    return end_of(child) == 0 ? "yes" : "no";
  }

  // Whatever comes of it.
  std::string attempt(std::istream&) {
    DAT_LMR_TRIPLET from = source_.triplet(0, 4096);
    DAT_LMR_TRIPLET to = source_.triplet(4096, 4096);
    remote_.segment_length = 4096;
    dat_ep_post_send(ep_.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG);
    dat_ep_post_rdma_write(ep_.get(), 1, &from, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG);
    dat_ep_post_rdma_read(ep_.get(), 1, &to, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG);
    return {};
  }

  std::string listen(std::istream& in) {
    DAT_CONN_QUAL qualifier = 0;
    if (!(in >> qualifier)) return std::to_string(side_.listen());
    require(dat_psp_create(side_.ia.get(), qualifier, side_.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp_),
            "dat_psp_create");
    return {};
  }
  std::string listen_no_more(std::istream&) {
    side_.psp.reset();
    return {};
  }

  std::string connect(std::istream& in) {
    DAT_CONN_QUAL qualifier = 0;
    std::string host = "127.0.0.1";
    in >> qualifier >> host;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    post_receive();
    require(dat_ep_connect(ep_.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), qualifier, DAT_TIMEOUT_INFINITE,
                           0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    return {};
  }

  std::string accept(std::istream&) {
    post_receive();
    const auto request = expect_event(side_.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep_.get(), 0, nullptr), "dat_cr_accept");
    return {};
  }

  std::string offer(std::istream&) {
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    return fmt::format("{} {}", region_->rmr_context(), reinterpret_cast<std::uintptr_t>(memory.data()));
  }

  std::string aim(std::istream& in) {
    unsigned long long context = 0, address = 0;
    in >> context >> address;
    remote_.rmr_context = static_cast<DAT_RMR_CONTEXT>(context);
    remote_.target_address = address;
    return {};
  }

  std::string send(std::istream& in) {
    fill_message(source_.bytes(), seed_from(in), 0);
    DAT_LMR_TRIPLET from = source_.triplet();
    require(dat_ep_post_send(ep_.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_success(side_.request.get());
    return {};
  }

  std::string receive_last(std::istream& in) {
    expect_success(side_.recv.get());
    if (!is_message(sink_.bytes(), seed_from(in), 0)) throw std::runtime_error("another message has arrived");
    return {};
  }
  std::string receive(std::istream& in) {
    receive_last(in);
    post_receive();
    return {};
  }

  std::string write(std::istream& in) {
    fill_message(source_.bytes(), seed_from(in), 1);
    post_write(kNeighbourBytes);
    expect_success(side_.request.get());
    return {};
  }

  std::string read(std::istream& in) {
    std::fill(source_.bytes().begin(), source_.bytes().end(), std::byte{0});
    DAT_LMR_TRIPLET to = source_.triplet();
    remote_.segment_length = kNeighbourBytes;
    require(dat_ep_post_rdma_read(ep_.get(), 1, &to, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    expect_success(side_.request.get());
    if (!is_message(source_.bytes(), seed_from(in), 1)) throw std::runtime_error("other bytes have been read");
    return {};
  }

  // Several messages under way at once.
  std::string post_sends(std::istream& in) {
    int count = 0;
    in >> count;
    const std::uint64_t seed = seed_from(in);
    many_.emplace(side_.ia, side_.pz, static_cast<std::size_t>(count) * kNeighbourBytes);
    for (int i = 0; i < count; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * kNeighbourBytes;
      fill_message(many_->bytes().subspan(offset, kNeighbourBytes), seed, static_cast<std::uint64_t>(i));
      DAT_LMR_TRIPLET from = many_->triplet(offset, kNeighbourBytes);
      require(dat_ep_post_send(ep_.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    }
    return {};
  }
  std::string await_sent(std::istream& in) {
    int count = 0;
    in >> count;
    for (int i = 0; i < count; ++i) expect_success(side_.request.get());
    return {};
  }
  std::string post_receives(std::istream& in) {
    int count = 0;
    in >> count;
    many_.emplace(side_.ia, side_.pz, static_cast<std::size_t>(count) * kNeighbourBytes);
    for (int i = 0; i < count; ++i) {
      DAT_LMR_TRIPLET to = many_->triplet(static_cast<std::size_t>(i) * kNeighbourBytes, kNeighbourBytes);
      require(dat_ep_post_recv(ep_.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
    arrived_ = 0;
    return {};
  }
  std::string receive_some(std::istream& in) {
    int count = 0;
    in >> count;
    const std::uint64_t seed = seed_from(in);
    for (int i = 0; i < count; ++i, ++arrived_) {
      expect_success(side_.recv.get());
      if (!is_message(many_->bytes().subspan(arrived_ * kNeighbourBytes, kNeighbourBytes), seed, arrived_)) {
        throw std::runtime_error(fmt::format("message {} is another one", arrived_));
      }
    }
    return {};
  }

  // What is asked for here completes when it may; await-sent and await-received wait for it.
  std::string post_send_of_memory(std::istream&) {
    DAT_LMR_TRIPLET from = region_->triplet();
    require(dat_ep_post_send(ep_.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    return {};
  }
  std::string post_receive_to_memory(std::istream&) {
    DAT_LMR_TRIPLET to = region_->triplet();
    require(dat_ep_post_recv(ep_.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    return {};
  }
  std::string post_write_of_memory(std::istream&) {
    DAT_LMR_TRIPLET from = region_->triplet();
    remote_.segment_length = kNeighbourBytes;
    require(dat_ep_post_rdma_write(ep_.get(), 1, &from, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
    return {};
  }
  std::string post_read_to_memory(std::istream&) {
    DAT_LMR_TRIPLET to = region_->triplet();
    remote_.segment_length = kNeighbourBytes;
    require(dat_ep_post_rdma_read(ep_.get(), 1, &to, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    return {};
  }
  std::string await_received(std::istream&) {
    expect_success(side_.recv.get());
    return {};
  }
  std::string lose_memory(std::istream&) {
    absent_.emplace(memory);
    return {};
  }
  std::string find_memory(std::istream& in) {
    std::vector<std::byte> content(kNeighbourBytes);
    fill_message(content, seed_from(in), 1);
    absent_->fill(content);
    absent_.reset();
    return {};
  }
  std::string free_endpoint(std::istream&) {
    require(ep_.free(), "dat_ep_free");
    return {};
  }

  std::string holds(std::istream& in) { return is_message(memory, seed_from(in), 1) ? "yes" : "no"; }

  std::string write_endlessly(std::istream& in) {
    std::size_t bytes = 0;
    in >> bytes;
    std::fill(source_.bytes().begin(), source_.bytes().end(), std::byte{0x11});
    post_write(bytes);
    expect_success(side_.request.get());
    context_.parent.say("ok");
    while (true) {
      post_write(bytes);
      // Only a call that may not sleep keeps at it.
      std::optional<DAT_EVENT> event;
      if (!eventually([&] { return (event = poll_event(side_.request.get())).has_value(); })) {
        throw std::runtime_error("a Write does not complete");
      }
      const auto status = event->event_data.dto_completion_event_data.status;
      if (status != DAT_DTO_SUCCESS) return std::to_string(status);
    }
  }

  std::string free_and_fill(std::istream&) {
    if (!eventually([] { return memory[0] != std::byte{0}; })) throw std::runtime_error("nothing is written");
    require(region_->free(), "dat_lmr_free");
    std::fill(memory.begin(), memory.end(), kFilled);
    return {};
  }

  std::string clear(std::istream&) {
    std::fill(memory.begin(), memory.end(), std::byte{0});
    return {};
  }

  std::string touched(std::istream&) {
    return std::to_string(std::count_if(memory.begin(), memory.end(), [](std::byte b) { return b != kFilled; }));
  }

  std::string hide(std::istream&) {
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) throw std::runtime_error("PR_SET_DUMPABLE");
    return {};
  }

  std::string end_main_thread(std::istream&) {
    main_thread_may_end.set_value();
    // By its number in the namespace that /proc shows.
    const std::string status =
        fmt::format("/proc/self/task/{}/stat", std::filesystem::read_symlink("/proc/self").string());
    const bool ended = eventually([&] {
      std::ifstream file(status);
      std::string words;
      std::getline(file, words);
      return words.find(") Z") != std::string::npos;
    });
    if (!ended) throw std::runtime_error("the main thread does not end");
    return {};
  }

  std::string leave_a_child(std::istream&) {
    // Not fork(): that would tell the library.
    if (::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) {
      pollfd test{.fd = kChannel, .events = 0, .revents = 0};
      ::poll(&test, 1, 60'000);  // until the test has hung up
      ::_exit(0);
    }
    return {};
  }

  std::string execute(std::istream&) {
    ::setenv(kLevelVariable, "next-program", 1);
    ::fcntl(kChannel, F_SETFD, 0);
    ::execl("/proc/self/exe", "/proc/self/exe", nullptr);
    throw std::runtime_error("execl");
  }

  std::string connection_event(std::istream&) {
    const auto event = wait_event(side_.connect.get());
    return event ? event_name(event->event_number) : "nothing";
  }

 private:
  static std::uint64_t seed_from(std::istream& in) {
    std::uint64_t seed = 0;
    in >> seed;
    return seed;
  }
  static void expect_success(DAT_EVD_HANDLE evd) {
    const auto event = expect_event(evd, DAT_DTO_COMPLETION_EVENT);
    const auto status = event.event_data.dto_completion_event_data.status;
    if (status != DAT_DTO_SUCCESS) throw std::runtime_error(fmt::format("a completion has status {}", int(status)));
  }
  static DAT_EP_ATTR large() {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = attr.max_rdma_size = kNeighbourBytes;
    return attr;
  }
  void post_receive() {
    DAT_LMR_TRIPLET to = sink_.triplet();
    require(dat_ep_post_recv(ep_.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  void post_write(std::size_t bytes) {
    DAT_LMR_TRIPLET from = source_.triplet(0, bytes);
    remote_.segment_length = bytes;
    require(dat_ep_post_rdma_write(ep_.get(), 1, &from, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
  }

  RoleContext& context_;
  Side side_{context_.wire};
  Ep ep_{side_, large()};
  Lmr source_{side_.ia, side_.pz, kNeighbourBytes};
  Lmr sink_{side_.ia, side_.pz, kNeighbourBytes};
  std::optional<Lmr> region_{std::in_place, side_.ia, side_.pz, std::span<std::byte>(memory)};
  DAT_RMR_TRIPLET remote_{};
  std::optional<AbsentMemory> absent_;
  std::optional<Lmr> many_;
  std::size_t arrived_ = 0;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
};

// The program that another one has executed in its place: it has not asked anybody to write into its memory.
void play_next_program(RoleContext& context) {
  context.parent.say("ok");
  while (context.parent.hear(std::chrono::hours(1)) == "touched") {
    context.parent.say("ok " + std::to_string(std::count_if(memory.begin(), memory.end(),
                                                            [](std::byte b) { return b != std::byte{0}; })));
  }
}

void play(RoleContext& context) {
  using Command = std::string (Player::*)(std::istream&);
  const std::map<std::string, Command> commands{
      {"listen", &Player::listen},
      {"listen-no-more", &Player::listen_no_more},
      {"connect", &Player::connect},
      {"accept", &Player::accept},
      {"offer", &Player::offer},
      {"aim", &Player::aim},
      {"send", &Player::send},
      {"receive", &Player::receive},
      {"receive-last", &Player::receive_last},
      {"clear", &Player::clear},
      {"end-main-thread", &Player::end_main_thread},
      {"write", &Player::write},
      {"read", &Player::read},
      {"holds", &Player::holds},
      {"post-sends", &Player::post_sends},
      {"await-sent", &Player::await_sent},
      {"post-receives", &Player::post_receives},
      {"receive-some", &Player::receive_some},
      {"write-endlessly", &Player::write_endlessly},
      {"free-and-fill", &Player::free_and_fill},
      {"touched", &Player::touched},
      {"hide", &Player::hide},
      {"leave-a-child", &Player::leave_a_child},
      {"execute", &Player::execute},
      {"connection-event", &Player::connection_event},
      {"post-send-of-memory", &Player::post_send_of_memory},
      {"post-receive-to-memory", &Player::post_receive_to_memory},
      {"post-write-of-memory", &Player::post_write_of_memory},
      {"post-read-to-memory", &Player::post_read_to_memory},
      {"await-received", &Player::await_received},
      {"lose-memory", &Player::lose_memory},
      {"find-memory", &Player::find_memory},
      {"free-endpoint", &Player::free_endpoint},
      {"take-descriptors", &Player::take_descriptors},
      {"untouched", &Player::untouched},
      {"untouched-in-a-child", &Player::untouched_in_a_child},
      {"attempt", &Player::attempt},
  };
  try {
    auto player = std::make_unique<Player>(context);
    while (true) {
      std::istringstream in(context.parent.hear(std::chrono::hours(1)));
      std::string name;
      in >> name;
      if (name == "begin-anew") {
        auto next = std::make_unique<Player>(context);
        player = std::move(next);  // which frees and closes all that the other has had
        context.parent.say(testing::Test::HasFailure() ? "something could not be freed" : "ok");
        continue;
      }
      const auto of_network = network_commands().find(name);
      context.parent.say("ok " + (of_network != network_commands().end() ? of_network->second(in)
                                                                         : ((*player).*commands.at(name))(in)));
    }
  } catch (const std::exception& error) {
    context.parent.say(error.what());
  }
}

constexpr std::string_view kUser = "user-";

void play_neighbour(RoleContext& context) {
  const char* const level = std::getenv(kLevelVariable);
  if (level != nullptr && std::string_view(level) == "next-program") {
    play_next_program(context);
    return;
  }
  const auto in = [&](std::string_view circumstance) {
    const auto& all = context.arguments;
    return std::find(all.begin(), all.end(), circumstance) != all.end();
  };
  if (in("fixed-addresses") && level == nullptr) {
    ::setenv(kLevelVariable, "fixed", 1);
    ::personality(ADDR_NO_RANDOMIZE);
    ::fcntl(kChannel, F_SETFD, 0);
    ::execl("/proc/self/exe", "/proc/self/exe", nullptr);
    throw std::runtime_error("execl");
  }
  give_up_looking_into_others();
  const bool address = !context.arguments.empty() && context.arguments.front().starts_with("10.");
  if (in("pid-namespace") || address) {
    std::optional<unsigned> number;
    for (const std::string& one : context.arguments) {
      if (one.starts_with(kUser)) number = static_cast<unsigned>(std::stoul(one.substr(kUser.size())));
    }
    try {
      enter_namespaces(CLONE_NEWPID | (address ? CLONE_NEWNET : 0), number);
      if (address) take_address(context.arguments.front());
    } catch (const std::exception& error) {
      context.parent.say(error.what());
      return;
    }
  }
  context.parent.say("ok");
  if (in("main-thread-ends")) {
    std::thread([&context] {
      play(context);
      ::_exit(0);
    }).detach();
    main_thread_may_end.get_future().wait();
    // What pthread_exit() comes to; it would first unwind what lies above, whose objects the other thread uses.
    ::syscall(SYS_exit, 0);
  }
  play(context);
  ::_exit(0);
}

const Role kNeighbour("neighbour", play_neighbour);

}  // namespace
}  // namespace anydat::test
