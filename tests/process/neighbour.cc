// SPDX-License-Identifier: BSD-3-Clause
#include "neighbour.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absent_memory.h"
#include "payload.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

constexpr std::byte kFilled{0xEE};
constexpr int kChannel = 3;  // to the test
constexpr const char* kLevelVariable = "ANYDAT_TEST_NEIGHBOUR_LEVEL";

// In the same place in every program that this one executes without randomized addresses, and zero there at first.
alignas(4096) std::array<std::byte, kNeighbourBytes> memory;

std::promise<void> main_thread_may_end;

// What needs a privilege is to be refused to the superuser as to anybody.
void give_up_looking_into_others() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return;
  sets[0].effective &= ~(1u << CAP_SYS_PTRACE);
  ::syscall(SYS_capset, &header, sets.data());
}

void write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!written) throw std::runtime_error(fmt::format("cannot write {}", path));
}

// The caller goes on as a process of other namespaces, with the same user; who called waits for it.
void enter_namespaces(int kinds) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | kinds) != 0) throw std::runtime_error("no namespaces");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", fmt::format("{} {} 1", user, user));
  write_file("/proc/self/gid_map", fmt::format("{} {} 1", group, group));
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

// Of a network namespace that has no other device than "lo".
void take_address(const std::string& text) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  const bool up = ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  auto& address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
  address = {};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  const bool taken = up && ::ioctl(socket, SIOCSIFADDR, &request) == 0;
  ::close(socket);
  if (!taken) throw std::runtime_error("no address of its own");
}

// What a program does that becomes a daemon in the old way: it closes all descriptors but those that it knows,
// whoever's they are, and then opens others.
class TakenDescriptors {
 public:
  // "none": 200 files, by the lowest numbers. Else each number that was open is a file's ("files"), an eventfd's
  // ("counters"), or a socket's that something has come for ("sockets").
  void take(const std::string& kind) {
    const std::vector<int> before = open_numbers();
    for (const int number : before) ::close(number);
    if (kind == "none") {
      for (int i = 0; i < 200; ++i) remember(make("files"));
      return;
    }
    // The library looks at its descriptors once in a millisecond, which is less than a program takes to open so many
    // files that it gets their numbers. This one asks for them by name, and so waits.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int first = make(kind);
    for (const int number : before) {
      const int fd = number == first ? first : make(kind);
      if (fd != number && (::dup2(fd, number) != number || ::close(fd) != 0)) throw std::runtime_error("dup2");
      remember(number);
    }
  }

  std::string untouched() const {
    std::array<std::byte, kBytes> text{};
    for (const Taken& taken : all_) {
      struct stat now {};
      if (::fstat(taken.fd, &now) != 0) return fmt::format("{} has been closed", taken.fd);
      if (now.st_ino != taken.status.st_ino) return fmt::format("{} is another file", taken.fd);
      if (S_ISREG(now.st_mode)) {
        if (::lseek(taken.fd, 0, SEEK_CUR) != 0) return fmt::format("{} has been read or written", taken.fd);
        if (::pread(taken.fd, text.data(), kBytes, 0) != kBytes || text != pattern()) {
          return fmt::format("{} has been written", taken.fd);
        }
      } else if (S_ISSOCK(now.st_mode)) {
        if (::recv(taken.fd, text.data(), kBytes, MSG_DONTWAIT | MSG_PEEK) != 1) {
          return fmt::format("{} has been read", taken.fd);
        }
        if (::recv(taken.other, text.data(), kBytes, MSG_DONTWAIT) >= 0 || errno != EAGAIN) {
          return fmt::format("something has been sent by {}, or its end", taken.fd);
        }
      } else {
        std::uint64_t count = 0;
        if (::read(taken.fd, &count, sizeof count) != sizeof count || count != kCount) {
          return fmt::format("{} has been rung or read", taken.fd);
        }
        if (::write(taken.fd, &count, sizeof count) != sizeof count) return "write";
      }
    }
    return "yes";
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::uint64_t kCount = 7;
  struct Taken {
    int fd;
    int other;  // the socket at the other end
    struct stat status;
  };

  static std::array<std::byte, kBytes> pattern() {
    std::array<std::byte, kBytes> text;
    text.fill(std::byte{0x77});
    return text;
  }
  static std::vector<int> open_numbers() {
    std::vector<int> numbers;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int number = std::stoi(entry.path().filename().string());
      if (number > kChannel) numbers.push_back(number);
    }
    // That of the folder is closed by now.
    std::erase_if(numbers, [](int number) { return ::fcntl(number, F_GETFD) < 0; });
    return numbers;
  }
  int make(const std::string& kind) {
    if (kind == "counters") return ::eventfd(kCount, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kind == "sockets") {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
        throw std::runtime_error("socketpair");
      if (::send(pair[1], "", 1, MSG_NOSIGNAL) != 1) throw std::runtime_error("send");
      other_ = ::fcntl(pair[1], F_DUPFD_CLOEXEC, 900);
      ::close(pair[1]);
      return pair[0];
    }
    const int fd = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const auto text = pattern();
    if (fd < 0 || ::pwrite(fd, text.data(), kBytes, 0) != kBytes) throw std::runtime_error("no file");
    return fd;
  }
  void remember(int fd) {
    Taken taken{fd, other_, {}};
    if (::fstat(fd, &taken.status) != 0) throw std::runtime_error("fstat");
    all_.push_back(taken);
  }

  std::vector<Taken> all_;
  int other_ = -1;
};
TakenDescriptors taken_descriptors;

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
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0 ? "yes" : "no";
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
      context.parent.say("ok " + ((*player).*commands.at(name))(in));
    }
  } catch (const std::exception& error) {
    context.parent.say(error.what());
  }
}

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
    try {
      enter_namespaces(CLONE_NEWPID | (address ? CLONE_NEWNET : 0));
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

Neighbour::Neighbour(const Wire& wire, std::vector<std::string> circumstances)
    : process_("neighbour", wire, circumstances) {
  command_ = "begin";
  answer();
}

void Neighbour::post(const std::string& command) {
  command_ = command;
  process_.channel().say(command);
}

std::string Neighbour::answer() {
  const std::string answer = process_.channel().hear(4 * patience());
  if (answer == "ok") return {};
  if (!answer.starts_with("ok ")) {
    throw std::runtime_error(fmt::format("told to {}, the neighbour answered: {}", command_, answer));
  }
  return answer.substr(3);
}

std::string Neighbour::tell(const std::string& command) {
  post(command);
  return answer();
}

void Neighbour::connect_to(Neighbour& other, const std::string& address) {
  const std::string qualifier = other.tell("listen");
  tell(fmt::format("connect {} {}", qualifier, address));
  other.tell("accept");
  const std::string ours = tell("offer");
  const std::string theirs = other.tell("offer");
  tell("aim " + theirs);
  other.tell("aim " + ours);
}

void Neighbour::send(int seed) {
  tell(fmt::format("send {}", seed));
}
void Neighbour::receive(int seed) {
  tell(fmt::format("receive {}", seed));
}
void Neighbour::write(int seed) {
  tell(fmt::format("write {}", seed));
}
void Neighbour::read(int seed) {
  tell(fmt::format("read {}", seed));
}
bool Neighbour::holds(int seed) {
  return tell(fmt::format("holds {}", seed)) == "yes";
}
void Neighbour::write_endlessly(std::size_t bytes) {
  tell(fmt::format("write-endlessly {}", bytes));
}
std::string Neighbour::end_of_writing() {
  return answer();
}
void Neighbour::free_and_fill() {
  tell("free-and-fill");
}
std::size_t Neighbour::touched() {
  return std::stoul(tell("touched"));
}
void Neighbour::hide() {
  tell("hide");
}
void Neighbour::leave_a_child() {
  tell("leave-a-child");
}
void Neighbour::execute() {
  tell("execute");
}
std::string Neighbour::connection_event() {
  return tell("connection-event");
}

void Neighbour::stop() {
  ::kill(process_.pid(), SIGSTOP);
  process_.wait_until_stopped();
}

void Neighbour::kill_all() {
  process_.kill();
  try {
    process_.channel().hear();
  } catch (const std::exception&) {
    // All ends of the channel are closed.
  }
}

void Neighbour::resume() {
  process_.resume();
}

}  // namespace anydat::test
