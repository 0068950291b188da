// SPDX-License-Identifier: BSD-3-Clause
//
// A server that receives from many clients through one small shared receive queue (SRQ).
//
// The program starts itself several times over as clients; with --serve they are started by hand, on whatever host,
// with --to. Each sends the same files, in an order of its own, as messages of mixed sizes. All of them land in the few
// buffers of one SRQ; the server keeps the queue supplied by its low-watermark event alone, which is the point of the
// example: no message is counted, no buffer is reserved for a client, and a client that finds the queue empty is held
// back until the refill, while the others go on.
//
// The server checks the SHA-256 of every file and, at the end, that no buffer of the queue is missing.
#include <anydat/anydat.h>
#include <fmt/format.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "srq-server.h"

namespace {

constexpr int kSendsInFlight = 16;
constexpr DAT_TIMEOUT kTimeoutUs = 30'000'000;
constexpr DAT_TIMEOUT kChildCheckUs = 1'000'000;

// ---- The client ----

class Client {
 public:
  explicit Client(const Options& options)
      : options_(options),
        adapter_(options.ia, kSendsInFlight * kMessageBytes),
        connection_(adapter_.make_evd(4, DAT_EVD_CONNECTION_FLAG)),
        completions_(adapter_.make_evd(kSendsInFlight, DAT_EVD_DTO_FLAG)) {
    // It only sends: no receive queue, and so no event dispatcher for one.
    const DAT_EP_ATTR attributes = endpoint_attributes(adapter_, 0, kSendsInFlight);
    check(dat_ep_create(adapter_.ia, adapter_.pz, DAT_HANDLE_NULL, completions_, connection_, &attributes, &ep_),
          "dat_ep_create");
    for (int i = 0; i < kSendsInFlight; ++i) free_.push_back(static_cast<std::size_t>(i));
  }

  void run() {
    connect();
    const std::size_t count = options_.files.size();
    const std::size_t first =
        count * static_cast<std::size_t>(options_.client) / static_cast<std::size_t>(options_.clients);
    for (std::size_t i = 0; i < count; ++i) send_file(options_.files[(first + i) % count]);
    send({Kind::done, 0}, nullptr, 0);
    // Graceful: what is posted is delivered first.
    check(dat_ep_disconnect(ep_, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    expect(DAT_CONNECTION_EVENT_DISCONNECTED);
  }

 private:
  void connect() {
    DAT_IA_ATTR attributes{};
    check(
        dat_ia_query(adapter_.ia, nullptr, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, DAT_PROVIDER_FIELD_NONE, nullptr),
        "dat_ia_query");
    DAT_IA_ADDRESS_PTR address = attributes.ia_address_ptr;
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(nullptr, &freeaddrinfo);
    if (!options_.host.empty()) {
      addrinfo* list = nullptr;
      if (const int error = getaddrinfo(options_.host.c_str(), nullptr, nullptr, &list); error != 0)
        throw std::runtime_error(fmt::format("{} has no address: {}", options_.host, gai_strerror(error)));
      found.reset(list);
      address = reinterpret_cast<DAT_IA_ADDRESS_PTR>(list->ai_addr);
    }
    int number = options_.client;  // the private data tells the server which client this is
    check(dat_ep_connect(ep_, address, options_.qualifier, kTimeoutUs, sizeof number, &number, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
    expect(DAT_CONNECTION_EVENT_ESTABLISHED);
  }

  void expect(DAT_EVENT_NUMBER number) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    check(dat_evd_wait(connection_, kTimeoutUs, 1, &event, &more), "waiting for a connection event");
    if (event.event_number != number)
      throw std::runtime_error(fmt::format("connection event {:#x} came where {:#x} was due",
                                           static_cast<int>(event.event_number), static_cast<int>(number)));
  }

  void send_file(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) throw std::runtime_error(fmt::format("{} cannot be read", name));
    const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Sha256 sha;
    sha.add(content.data(), content.size());
    const Digest digest = sha.finish();
    send({Kind::file, content.size()}, digest.data(), digest.size());
    for (std::size_t at = 0; at < content.size();) {
      const std::size_t bytes = std::min(next_size(), content.size() - at);
      send({Kind::data, 0}, content.data() + at, bytes);
      at += bytes;
    }
  }

  // Sizes of every order, from one byte to the longest that fits, different for each client and the same every time.
  std::size_t next_size() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u + static_cast<unsigned>(options_.client);
    const std::size_t up_to = std::size_t{1} << (random_ >> 60);
    return std::min(1 + (random_ >> 32) % up_to, kMessageBytes - sizeof(Head));
  }

  void send(Head head, const void* data, std::size_t bytes) {
    while (free_.empty()) {
      DAT_EVENT event{};
      DAT_COUNT more = 0;
      check(dat_evd_wait(completions_, kTimeoutUs, 1, &event, &more), "waiting for a Send to complete");
      const auto& completion = event.event_data.dto_completion_event_data;
      if (completion.status != DAT_DTO_SUCCESS)
        throw std::runtime_error(fmt::format("a Send completed with status {}", static_cast<int>(completion.status)));
      free_.push_back(completion.user_cookie.as_64);
    }
    const std::size_t slot = free_.back();
    free_.pop_back();
    std::memcpy(adapter_.buffer(slot), &head, sizeof head);
    if (bytes > 0) std::memcpy(adapter_.buffer(slot) + sizeof head, data, bytes);
    DAT_LMR_TRIPLET message = adapter_.segment(slot, sizeof head + bytes);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = slot;
    check(dat_ep_post_send(ep_, 1, &message, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }

  const Options& options_;
  Adapter adapter_;
  DAT_EVD_HANDLE connection_;
  DAT_EVD_HANDLE completions_;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  std::vector<std::size_t> free_;
  std::uint64_t random_ = 88172645463325252u;
};

// ---- The server ----

// An object's counters by name; empty for a library that has none.
std::map<std::string, std::uint64_t> counters_of(DAT_HANDLE object) {
  std::array<ANYDAT_COUNTER, 64> counters{};
  DAT_COUNT count = 0;
  check(anydat_get_counters(object, counters.size(), counters.data(), &count), "anydat_get_counters");
  std::map<std::string, std::uint64_t> values;
  for (DAT_COUNT i = 0; i < std::min<DAT_COUNT>(count, counters.size()); ++i)
    values[counters[static_cast<std::size_t>(i)].name] = counters[static_cast<std::size_t>(i)].value;
  return values;
}

// What the server knows of one client.
struct Peer {
  int number = -1;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  bool done = false;  // said that it was
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  int files_good = 0;
  int files_bad = 0;
  std::uint64_t file_bytes_left = 0;
  Digest expected{};
  std::unique_ptr<Sha256> sha;
  std::map<std::string, std::uint64_t> counters;  // read when the connection ended
};

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options), adapter_(options.ia, static_cast<std::size_t>(options.buffers) * kMessageBytes) {
    // One wake-up point for all kinds of news. The async dispatcher came with the adapter and is only pointed at it.
    check(dat_cno_create(adapter_.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno_), "dat_cno_create");
    check(dat_evd_modify_cno(adapter_.async_evd, cno_), "dat_evd_modify_cno");
    connections_ = adapter_.make_evd(4 * options.clients,
                                     static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG), cno_);
    receives_ = adapter_.make_evd(options.buffers, DAT_EVD_DTO_FLAG, cno_);

    DAT_SRQ_ATTR attributes{};
    attributes.max_recv_dtos = options.buffers;
    attributes.max_recv_iov = 1;
    attributes.low_watermark = DAT_SRQ_LW_DEFAULT;
    check(dat_srq_create(adapter_.ia, adapter_.pz, &attributes, &srq_), "dat_srq_create");
    for (int i = 0; i < options.buffers; ++i) idle_.push_back(static_cast<std::size_t>(i));
    refill();
    check(dat_psp_create_any(adapter_.ia, &qualifier_, connections_, DAT_PSP_CONSUMER_FLAG, &psp_),
          "dat_psp_create_any");
  }

  int run() {
    if (options_.serve) {
      fmt::print("Waiting for them on qualifier {}.\n\n", qualifier_);
      std::fflush(stdout);
    } else {
      start_clients();
    }
    const auto start = std::chrono::steady_clock::now();
    while (ended_.size() < static_cast<std::size_t>(options_.clients) && !trouble_) {
      DAT_EVD_HANDLE hint = DAT_HANDLE_NULL;
      const DAT_RETURN status = dat_cno_wait(cno_, kChildCheckUs, &hint);
      if (status != DAT_SUCCESS && DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY &&
          DAT_GET_TYPE(status) != DAT_INTERRUPTED_CALL)
        check(status, "dat_cno_wait");
      // Several triggers may have become one: look at every dispatcher until all are empty.
      while (drain(receives_) + drain(adapter_.async_evd) + drain(connections_) > 0) {
      }
      // Now all that had arrived is read, so as many buffers as can be go back in one go.
      if (refill_wanted_) refill();
      if (status != DAT_SUCCESS) look_after_children(WNOHANG);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    // Clients in the middle of a run that failed would only wait for a server that no longer receives.
    for (const pid_t pid : children_)
      if (trouble_ && pid > 0) kill(pid, SIGTERM);
    look_after_children(0);
    return report(elapsed.count()) ? 0 : 1;
  }

 private:
  void start_clients() {
    for (int i = 0; i < options_.clients; ++i) {
      std::vector<std::string> arguments{"srq-server",
                                         "--client",
                                         std::to_string(i),
                                         "--clients",
                                         std::to_string(options_.clients),
                                         "--qual",
                                         std::to_string(qualifier_),
                                         "--ia",
                                         options_.ia,
                                         "--"};
      arguments.insert(arguments.end(), options_.files.begin(), options_.files.end());
      std::vector<char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      pid_t pid = -1;
      if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0)
        throw std::runtime_error("a client process cannot be started");
      children_.push_back(pid);
    }
  }

  void look_after_children(int flags) {
    for (auto& pid : children_) {
      int status = 0;
      if (pid <= 0 || waitpid(pid, &status, flags) != pid) continue;
      pid = 0;
      const bool stopped_by_us = trouble_ && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
      if (status != 0 && !stopped_by_us) complain("a client process failed");
    }
  }

  // Handles what is on one dispatcher; returns how many events that were.
  int drain(DAT_EVD_HANDLE evd) {
    int handled = 0;
    for (DAT_EVENT event{}; dat_evd_dequeue(evd, &event) == DAT_SUCCESS; ++handled) {
      switch (event.event_number) {
        case DAT_DTO_COMPLETION_EVENT:
          receive(event.event_data.dto_completion_event_data);
          break;
        case DAT_CONNECTION_REQUEST_EVENT:
          accept(event.event_data.cr_arrival_event_data.cr_handle);
          break;
        case DAT_CONNECTION_EVENT_ESTABLISHED:
          break;
        case DAT_CONNECTION_EVENT_DISCONNECTED:
        case DAT_CONNECTION_EVENT_BROKEN:
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
          end(event.event_data.connect_event_data.ep_handle);
          break;
        default:
          notice(event.event_data.asynch_error_event_data);
      }
    }
    return handled;
  }

  void accept(DAT_CR_HANDLE cr) {
    DAT_CR_PARAM request{};
    check(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request), "dat_cr_query");
    Peer peer;
    if (request.private_data_size == sizeof peer.number)
      std::memcpy(&peer.number, request.private_data, sizeof peer.number);
    // The endpoint's own limits on how many buffers it may hold are left open (DAT_HW_DEFAULT).
    const DAT_EP_ATTR attributes = endpoint_attributes(adapter_, DAT_HW_DEFAULT, 0);
    check(dat_ep_create_with_srq(adapter_.ia, adapter_.pz, receives_, DAT_HANDLE_NULL, connections_, srq_, &attributes,
                                 &peer.ep),
          "dat_ep_create_with_srq");
    check(dat_cr_accept(cr, peer.ep, 0, nullptr), "dat_cr_accept");
    connected_.emplace(peer.ep, std::move(peer));
  }

  void receive(const DAT_DTO_COMPLETION_EVENT_DATA& completion) {
    const std::size_t buffer = completion.user_cookie.as_64;
    if (completion.status == DAT_DTO_SUCCESS)
      read_message(connected_.at(completion.ep_handle), adapter_.buffer(buffer), completion.transfered_length);
    idle_.push_back(buffer);
  }

  void read_message(Peer& peer, const char* message, std::size_t bytes) {
    Head head{};
    if (bytes < sizeof head) return complain("a message is too short");
    std::memcpy(&head, message, sizeof head);
    const char* data = message + sizeof head;
    const std::size_t data_bytes = bytes - sizeof head;
    ++peer.messages;
    peer.bytes += bytes;
    if (head.kind == Kind::done) {
      peer.done = true;
      return;
    }
    if (head.kind == Kind::file) {
      if (peer.file_bytes_left > 0 || data_bytes != peer.expected.size()) return complain("a file is incomplete");
      std::memcpy(peer.expected.data(), data, data_bytes);
      peer.file_bytes_left = head.file_bytes;
      peer.sha = std::make_unique<Sha256>();
    } else {
      if (data_bytes > peer.file_bytes_left) return complain("a file is longer than announced");
      peer.sha->add(data, data_bytes);
      peer.file_bytes_left -= data_bytes;
    }
    if (peer.file_bytes_left == 0) ++(peer.sha->finish() == peer.expected ? peer.files_good : peer.files_bad);
  }

  // The only thing that asks for a refill. Idle buffers wait until the queue says that it is running low.
  void notice(const DAT_ASYNCH_ERROR_EVENT_DATA& event) {
    if (event.dat_handle != srq_ || event.reason != DAT_SRQ_LOW_WATERMARK_EVENT)
      return complain("an asynchronous event of another kind came");
    refill_wanted_ = true;
  }

  // Posts all idle buffers, then arms the watermark for the next time. Should the queue be low even so, the event comes
  // again at once. Without an idle buffer the wish stays until one comes back.
  void refill() {
    if (idle_.empty()) return;
    for (const std::size_t buffer : idle_) {
      DAT_LMR_TRIPLET segment = adapter_.segment(buffer, kMessageBytes);
      DAT_DTO_COOKIE cookie{};
      cookie.as_64 = buffer;
      check(dat_srq_post_recv(srq_, 1, &segment, cookie), "dat_srq_post_recv");
    }
    idle_.clear();
    ++refills_;
    refill_wanted_ = false;
    check(dat_srq_set_lw(srq_, options_.low_watermark), "dat_srq_set_lw");
  }

  void end(DAT_EP_HANDLE ep) {
    // The last messages may still be on the other dispatcher.
    drain(receives_);
    Peer peer = std::move(connected_.extract(ep).mapped());
    if (!peer.done) complain(fmt::format("client {} left before it was done", peer.number));
    peer.counters = counters_of(ep);
    check(dat_ep_free(ep), "dat_ep_free");
    ended_.push_back(std::move(peer));
  }

  void complain(const std::string& what) {
    fmt::print(stderr, "srq-server: {}\n", what);
    trouble_ = true;
  }

  bool report(double seconds) {
    fmt::print("{:>6} {:>6} {:>9} {:>12}   {:<26} {}\n", "client", "files", "messages", "bytes", "waited for a buffer",
               "SHA-256");
    std::sort(ended_.begin(), ended_.end(), [](const Peer& a, const Peer& b) { return a.number < b.number; });
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    bool good = !trouble_ && ended_.size() == static_cast<std::size_t>(options_.clients);
    for (Peer& peer : ended_) {
      const auto bad = options_.files.size() - static_cast<std::size_t>(peer.files_good);
      fmt::print("{:>6} {:>6} {:>9} {:>12}   {:<26} {}\n", peer.number, peer.files_good + peer.files_bad, peer.messages,
                 peer.bytes,
                 fmt::format("{} times, {:.1f} ms", peer.counters["buffer_waits"],
                             static_cast<double>(peer.counters["buffer_wait_ns"]) / 1e6),
                 bad == 0 ? "all match" : fmt::format("{} DO NOT MATCH", bad));
      messages += peer.messages;
      bytes += peer.bytes;
      good = good && bad == 0 && peer.files_bad == 0;
    }

    auto srq = counters_of(srq_);
    DAT_SRQ_PARAM queue{};
    check(dat_srq_query(srq_, DAT_SRQ_FIELD_ALL, &queue), "dat_srq_query");
    fmt::print("\nAll of it went through {} shared buffer{} ({} KiB):\n", options_.buffers,
               options_.buffers == 1 ? "" : "s", static_cast<std::size_t>(options_.buffers) * kMessageBytes >> 10);
    fmt::print("  messages       {} in {:.2f} s, {:.1f} MB/s\n", messages, seconds,
               static_cast<double>(bytes) / 1e6 / seconds);
    fmt::print("  buffers        posted {}, taken by endpoints {}, back with the server {}\n", srq["posted"],
               srq["taken"], srq["reaped"]);
    fmt::print("  lowest level   {} of {}; empty {} times, {:.1f} ms in all\n", srq["lowest_available"],
               options_.buffers, srq["times_empty"], static_cast<double>(srq["empty_ns"]) / 1e6);
    fmt::print("  low watermark  {}; {} events, {} refills\n", options_.low_watermark, srq["low_watermark_events"],
               refills_);
    const auto whole = static_cast<std::size_t>(queue.available_dto_count) + idle_.size();
    const bool complete =
        queue.available_dto_count == queue.outstanding_dto_count && whole == static_cast<std::size_t>(options_.buffers);
    fmt::print("  at the end     {} buffers on the queue, {} idle: {}\n", queue.available_dto_count, idle_.size(),
               complete ? "none missing" : "SOME ARE MISSING");
    fmt::print("\n{}\n", good && complete ? "Every byte of every file arrived." : "FAILED: see above.");
    return good && complete;
  }

  const Options& options_;
  Adapter adapter_;
  DAT_CNO_HANDLE cno_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connections_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE receives_ = DAT_HANDLE_NULL;
  DAT_SRQ_HANDLE srq_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
  DAT_CONN_QUAL qualifier_ = 0;
  std::vector<pid_t> children_;
  std::map<DAT_EP_HANDLE, Peer> connected_;
  std::vector<Peer> ended_;        // apart, because an endpoint's handle may be used again once it is freed
  std::vector<std::size_t> idle_;  // buffers that are with the server, not on the queue
  bool refill_wanted_ = false;     // the queue ran low and was not refilled yet
  int refills_ = 0;
  bool trouble_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::string who = options.client >= 0 ? fmt::format("srq-server, client {}", options.client) : "srq-server";
  try {
    if (options.client >= 0) {
      Client(options).run();
      return 0;
    }
    fmt::print("{} clients each send {} file{} to one server.\n\n", options.clients, options.files.size(),
               options.files.size() == 1 ? "" : "s");
    std::fflush(stdout);
    return Server(options).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", who, error.what());
    return 1;
  }
}
