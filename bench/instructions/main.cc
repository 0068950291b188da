// SPDX-License-Identifier: BSD-3-Clause
// The calls of the hot path, one after the other, for a script that counts what each costs: instructions.sh runs this
// program under callgrind, which collects only inside anydat_counted() and writes one profile at the end of each of its
// calls. Standard output names them in that order, one line each:
//   plain post_send 16 ok
// `late` instead of `ok` is a count to be thrown away, because the call met something else than it was meant to.
//
// The other side is a process of its own that runs at full speed and polls all the time, so that no thread has to be
// woken. It is the target of everything, and sends when it is told to, through a page that both share.
#include <anydat/anydat.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/pause.h"
#include "common/process.h"
#include "instructions/partner.h"
#include "instructions/side.h"

namespace {

using namespace std::chrono_literals;
using namespace counting;

constexpr int kPageFd = 3;
constexpr auto kSoon = 60us;
constexpr std::array kInARow = {1, 16, 64};
// A lock is biased towards who has taken it as often (os/biased_lock.h).
constexpr int kWarmUps = 140;

using Target = const DAT_RMR_TRIPLET*;
using Function = void(Side&, int count, Target, DAT_EVD_HANDLE other);

// One call of the hot path, `count` times in a row.
struct Call {
  Function* function;
  Side* side;
  int count;
  Target target;
  DAT_EVD_HANDLE other;  // a dispatcher to which nothing ever comes
};

}  // namespace

// By this name callgrind knows what to collect.
extern "C" [[gnu::noipa]] void anydat_counted(const Call* call) {
  call->function(*call->side, call->count, call->target, call->other);
  asm volatile("");  // so that the call is none that never returns here
}

namespace {

void post_sends(Side& side, int count, Target, DAT_EVD_HANDLE) {
  for (int i = 0; i < count; ++i) side.post_send(static_cast<std::size_t>(i));
}

void post_recvs(Side& side, int count, Target, DAT_EVD_HANDLE) {
  for (int i = 0; i < count; ++i) side.post_recv(static_cast<std::size_t>(i));
}

void post_sends_at_once(Side& side, int count, Target, DAT_EVD_HANDLE) {
  side.post_sends(count);
}

void post_recvs_at_once(Side& side, int count, Target, DAT_EVD_HANDLE) {
  side.post_recvs(count);
}

// Progress through another dispatcher, until the last message has filled its buffer. So dequeuing is not part of it.
void arrivals(Side& side, int count, Target, DAT_EVD_HANDLE other) {
  DAT_EVENT event;
  const volatile std::byte* last = side.buffer(static_cast<std::size_t>(count - 1));
  do {
    dat_evd_dequeue(other, &event);
  } while (*last == std::byte{0});
}

void dequeues(Side& side, int count, Target, DAT_EVD_HANDLE) {
  DAT_EVENT event;
  for (int i = 0; i < count; ++i) dat_evd_dequeue(side.recv.get(), &event);
}

void dequeues_at_once(Side& side, int count, Target, DAT_EVD_HANDLE) {
  std::array<DAT_EVENT, kAtOnce> events;
  DAT_COUNT taken = 0;
  at_once_calls.evd_dequeue_many(side.recv.get(), count, events.data(), &taken);
}

void empty_dequeues(Side&, int count, Target, DAT_EVD_HANDLE other) {
  DAT_EVENT event;
  for (int i = 0; i < count; ++i) dat_evd_dequeue(other, &event);
}

void rdma_writes(Side& side, int count, Target target, DAT_EVD_HANDLE) {
  for (int i = 0; i < count; ++i) side.post_rdma(true, *target);
}

void rdma_reads(Side& side, int count, Target target, DAT_EVD_HANDLE) {
  for (int i = 0; i < count; ++i) side.post_rdma(false, *target);
}

class Counted {
 public:
  Counted(Page& page, int repetitions, const std::string& host)
      : page_(page),
        repetitions_(repetitions),
        host_(host),
        adapter_(tools::kDefaultIa),
        other_(adapter_.make_evd(8, DAT_EVD_SOFTWARE_FLAG)) {}

  void run() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (page_.qualifier.load() == 0) {
      if (std::chrono::steady_clock::now() > deadline) throw tools::Error("the other process does not start");
      sched_yield();
    }
    mapped_ = target(page_.mapped.address, page_.mapped.context);
    heap_ = target(page_.heap.address, page_.heap.context);
    for (const bool on_srq : {false, true}) {
      auto side = std::make_unique<Side>(adapter_, on_srq);
      const tools::Peer peer = tools::resolve_peer(host_, page_.qualifier.load());
      tools::connect(side->ep.get(), side->connect.get(), peer, kPatience, {});
      sides_.push_back(std::move(side));
    }
    for (std::size_t i = 0; i < sides_.size(); ++i) count_side(i);
    count(*sides_[0], "plain", "dequeue_empty", empty_dequeues);
  }

 private:
  static DAT_RMR_TRIPLET target(std::uint64_t address, std::uint32_t context) {
    DAT_RMR_TRIPLET triplet{};
    triplet.rmr_context = context;
    triplet.target_address = address;
    triplet.segment_length = kMessageBytes;
    return triplet;
  }

  void count_side(std::size_t index) {
    Side& side = *sides_[index];
    const char* kind = index == 0 ? "plain" : "srq";
    for (const int in_a_row : kInARow) {
      for (int i = -kWarmUps; i < repetitions_; ++i) {
        sends(side, kind, in_a_row, i >= 0, {"post_send", post_sends});
        messages(side, index, kind, in_a_row, i >= 0, one_by_one(side));
        if (in_a_row == kAtOnce && at_once_calls.all_there()) {
          sends(side, kind, in_a_row, i >= 0, {"post_sends", post_sends_at_once});
          messages(side, index, kind, in_a_row, i >= 0, at_once(side));
        }
        if (index > 0) continue;
        rdma(side, "rdma_write", rdma_writes, mapped_, in_a_row, i >= 0);
        rdma(side, "rdma_read", rdma_reads, mapped_, in_a_row, i >= 0);
        rdma(side, "rdma_write_copied", rdma_writes, heap_, in_a_row, i >= 0);
        rdma(side, "rdma_read_copied", rdma_reads, heap_, in_a_row, i >= 0);
      }
    }
  }

  // Everything is quiet, and what the other side has said of its progress has been read.
  void settle() {
    for (int i = 0; i < 20; ++i) empty_dequeues(*sides_[0], 1, nullptr, other_.get());
  }

  void go(const Call& call, bool counts, const char* kind, const char* name, bool good = true) {
    if (!counts) return call.function(*call.side, call.count, call.target, call.other);
    anydat_counted(&call);
    fmt::print("{} {} {} {}\n", kind, name, call.count, good ? "ok" : "late");
  }

  void count(Side& side, const char* kind, const char* name, Function* function) {
    for (int i = 0; i < repetitions_; ++i) go({function, &side, 1, nullptr, other_.get()}, true, kind, name);
  }

  // By which calls a row of messages is received.
  struct Named {
    const char* name;
    Function* function;
  };
  struct Receiving {
    Named post, dequeue;
    bool counts_arrivals;
  };
  static Receiving one_by_one(const Side& side) {
    return {{side.srq ? "srq_post_recv" : "post_recv", post_recvs}, {"dequeue", dequeues}, true};
  }
  static Receiving at_once(const Side& side) {
    return {
        {side.srq ? "srq_post_recvs" : "post_recvs", post_recvs_at_once}, {"dequeue_many", dequeues_at_once}, false};
  }

  // Some things are looked at anew when they have not been for some milliseconds, which is not what is to be counted;
  // so another call comes right before those that count.
  void sends(Side& side, const char* kind, int in_a_row, bool counts, const Named& call) {
    settle();
    for (const bool first : {true, false}) {
      const int count = first ? 1 : in_a_row;
      const std::uint32_t before = page_.received.load();
      go({call.function, &side, count, nullptr, other_.get()}, counts && !first, kind, call.name);
      take_all(side.request.get(), count);
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      while (page_.received.load() - before != static_cast<std::uint32_t>(count)) {
        settle();
        if (std::chrono::steady_clock::now() > deadline) throw tools::Error("Sends do not arrive");
      }
    }
  }

  void messages(Side& side, std::size_t index, const char* kind, int in_a_row, bool counts, const Receiving& calls) {
    receive(side, index, kind, 1, false, calls);
    receive(side, index, kind, in_a_row, counts, calls);
  }

  void receive(Side& side, std::size_t index, const char* kind, int in_a_row, bool counts, const Receiving& calls) {
    settle();
    for (int i = 0; i < in_a_row; ++i) *side.buffer(static_cast<std::size_t>(i)) = std::byte{0};
    go({calls.post.function, &side, in_a_row, nullptr, other_.get()}, counts, kind, calls.post.name);
    settle();
    page_.on_srq.store(static_cast<std::uint32_t>(index));
    page_.sends.store(static_cast<std::uint32_t>(in_a_row));
    const auto start = std::chrono::steady_clock::now();
    const std::uint32_t order = page_.wanted.fetch_add(1) + 1;
    // No call meanwhile: it would be the one that lets the messages in. Nor any sleep, in which the library's own
    // thread would; should it all the same, the first buffer tells. After a while the next look is one at descriptors
    // as well, which is not what is to be counted.
    while (page_.done.load() != order) tools::pause();
    const volatile std::byte* first = side.buffer(0);
    const bool in_time = *first == std::byte{0} && std::chrono::steady_clock::now() - start < kSoon;
    go({arrivals, &side, in_a_row, nullptr, other_.get()}, counts && calls.counts_arrivals, kind, "arrival", in_time);
    settle();
    go({calls.dequeue.function, &side, in_a_row, nullptr, other_.get()}, counts, kind, calls.dequeue.name);
  }

  void rdma(Side& side, const char* name, Function* function, const DAT_RMR_TRIPLET& target, int in_a_row,
            bool counts) {
    settle();
    function(side, 1, &target, other_.get());
    take_all(side.request.get(), 1);
    go({function, &side, in_a_row, &target, other_.get()}, counts, "plain", name);
    take_all(side.request.get(), in_a_row);
  }

  Page& page_;
  int repetitions_;
  std::string host_;
  tools::Adapter adapter_;
  tools::Evd other_;
  DAT_RMR_TRIPLET mapped_{}, heap_{};
  std::vector<std::unique_ptr<Side>> sides_;
};

Page& map_page(int fd) {
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) tools::fail_errno("mapping a page");
  return *static_cast<Page*>(memory);
}

// By its name, because /proc/self/exe is the simulator's own program under one.
pid_t start_partner(int page_fd) {
  std::array<char, 4096> name{};
  if (readlink("/proc/self/exe", name.data(), name.size() - 1) < 0) tools::fail_errno("reading /proc/self/exe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, page_fd, kPageFd);
  char option[] = "--partner";
  std::array<char*, 3> arguments{name.data(), option, nullptr};
  pid_t pid = -1;
  errno = posix_spawn(&pid, name.data(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) tools::fail_errno("starting the other process");
  return pid;
}

int count_all(int repetitions, const std::string& host) {
  const tools::Fd fd(memfd_create("page", MFD_CLOEXEC));
  if (fd.get() < 0 || ftruncate(fd.get(), sizeof(Page)) != 0) tools::fail_errno("making a page");
  Page& page = map_page(fd.get());
  const pid_t partner = start_partner(fd.get());
  int result = tools::kExitOk;
  try {
    Counted(page, repetitions, host).run();
  } catch (const tools::Error& error) {
    fmt::print(stderr, "instructions: {}\n", error.what());
    result = tools::kExitFailed;
  }
  kill(partner, SIGKILL);
  tools::exit_code_of(partner);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  bool partner = false;
  int repetitions = 5;
  std::string host = "localhost";
  CLI::App app("The calls of the hot path for instructions.sh to count", "instructions");
  app.add_flag("--partner", partner, "Be the other side (used by the program itself)")->group("");
  app.add_option("--repetitions", repetitions, "How often each is called")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--to", host, "The address by which it reaches itself")->capture_default_str();
  return tools::run_tool(app, argc, argv, [&] {
    if (!partner) return count_all(repetitions, host);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Partner(map_page(kPageFd)).run();
  });
}
