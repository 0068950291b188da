// SPDX-License-Identifier: BSD-3-Clause
// rping, spoken through DAT: either of its ends, so that its other end can be rping itself, on an RDMA device.
//
// In each round the client sends where its text lies (16 bytes: address, key and length, in network order); the server
// reads the text from there and sends 16 bytes to say so; the client sends where the text shall come back to; the
// server writes it there and sends once more. So a round has four Sends, a Read and a Write, and the client sees
// whether the text came back unchanged.
#include <endian.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "common/command_line.h"
#include "common/connection.h"
#include "common/error.h"

namespace {

constexpr tools::Timeout kTimeout = std::chrono::seconds(60);

struct Options {
  std::string ia = tools::kDefaultIa;
  std::string to;  // of a client
  DAT_CONN_QUAL qualifier = 0;
  std::size_t size = 64;
  int count = 10;
};

struct Offer {
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t length;
};
static_assert(sizeof(Offer) == 16);

class Pinger {
 public:
  explicit Pinger(const Options& options)
      : options_(options),
        adapter_(options.ia),
        news_(adapter_.make_evd(64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG)),
        messages_(adapter_, kReceives * sizeof(Offer) + sizeof(Offer)),
        out_(adapter_, options.size, kRemote),
        back_(adapter_, options.size, kRemote),
        ep_(adapter_.make_ep(news_.get(), news_.get(), news_.get(), kReceives, 8)) {
    for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  // Asks until the server answers, or for kTimeout.
  void connect() {
    const tools::Peer server = tools::resolve_peer(options_.to, 0);
    const auto deadline = std::chrono::steady_clock::now() + kTimeout;
    for (;;) {
      try {
        tools::connect(ep_.get(), news_.get(), server, kTimeout, {});
        return;
      } catch (const tools::Error&) {
        if (std::chrono::steady_clock::now() > deadline) throw;
      }
      usleep(200'000);  // who asked too early asks again: there is nothing to wait for
      DAT_EVENT event{};
      while (dat_evd_dequeue(news_.get(), &event) == DAT_SUCCESS) {
      }
      tools::check(dat_ep_reset(ep_.get()), "dat_ep_reset");
      for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
    }
  }

  void accept() {
    const tools::Listener listener(adapter_, news_.get(), options_.qualifier);
    fmt::print("serving on {}\n", listener.qualifier());
    std::fflush(stdout);
    const DAT_EVENT request = await(DAT_CONNECTION_REQUEST_EVENT);
    tools::check(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep_.get(), 0, nullptr),
                 "dat_cr_accept");
    await(DAT_CONNECTION_EVENT_ESTABLISHED);
  }

  void be_client() {
    for (int round = 0; round < options_.count; ++round) {
      for (std::size_t i = 0; i < options_.size; ++i)
        out_.data()[i] = static_cast<std::byte>('A' + (i + static_cast<std::size_t>(round)) % 58);
      out_.data()[options_.size - 1] = std::byte{0};  // rping writes back as much as is text
      std::fill_n(back_.data(), options_.size, std::byte{0});
      offer(out_);
      receive();
      offer(back_);
      receive();
      if (!std::equal(out_.data(), out_.data() + options_.size, back_.data()))
        throw tools::Error(fmt::format("the text of round {} came back changed", round));
    }
    leave();
    fmt::print("{} rounds of {} bytes came back\n", options_.count, options_.size);
  }

  void be_server() {
    int rounds = 0;
    for (; rounds < options_.count; ++rounds) {
      const Offer source = receive();
      move(source, true);
      offer(out_);
      const Offer sink = receive();
      move(sink, false);
      offer(out_);
    }
    await(DAT_CONNECTION_EVENT_DISCONNECTED);
    fmt::print("{} rounds served\n", rounds);
  }

 private:
  static constexpr std::size_t kReceives = 8;
  static constexpr int kRemote = DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
  static constexpr std::uint64_t kRequest = 1000;  // the cookie of requests; receives have their place

  void post_receive(std::uint64_t place) {
    DAT_LMR_TRIPLET triplet = messages_.at(place * sizeof(Offer), sizeof(Offer));
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = place;
    tools::check(dat_ep_post_recv(ep_.get(), 1, &triplet, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }

  DAT_EVENT next() {
    DAT_EVENT event{};
    if (!tools::wait_event(news_.get(), kTimeout, event)) throw tools::Error("the other side is silent");
    return event;
  }

  // Completions that come before it are put aside: receives are remembered.
  DAT_EVENT await(DAT_EVENT_NUMBER number) {
    for (;;) {
      const DAT_EVENT event = next();
      if (event.event_number == number) return event;
      if (event.event_number != DAT_DTO_COMPLETION_EVENT)
        throw tools::Error(fmt::format("{} came", tools::event_name(event.event_number)));
      const auto& completion = event.event_data.dto_completion_event_data;
      if (completion.status == DAT_DTO_SUCCESS) note(completion);
    }
  }

  void note(const DAT_DTO_COMPLETION_EVENT_DATA& completion) {
    if (completion.status != DAT_DTO_SUCCESS)
      throw tools::Error(fmt::format("an operation {} ended with {}", completion.user_cookie.as_64,
                                     tools::completion_status_name(completion.status)));
    if (completion.user_cookie.as_64 == kRequest) {
      ++requests_done_;
    } else {
      arrived_.push_back(completion.user_cookie.as_64);
    }
  }

  void work_until(const auto& done) {
    while (!done()) {
      const DAT_EVENT event = next();
      if (event.event_number != DAT_DTO_COMPLETION_EVENT)
        throw tools::Error(fmt::format("{} came", tools::event_name(event.event_number)));
      note(event.event_data.dto_completion_event_data);
    }
  }

  Offer receive() {
    work_until([&] { return !arrived_.empty(); });
    const std::uint64_t place = arrived_.front();
    arrived_.erase(arrived_.begin());
    Offer offer{};
    std::memcpy(&offer, messages_.data() + place * sizeof offer, sizeof offer);
    post_receive(place);
    return {be64toh(offer.address), be32toh(offer.key), be32toh(offer.length)};
  }

  void await_request() {
    const int wanted = ++requests_posted_;
    work_until([&] { return requests_done_ == wanted; });
  }

  void offer(const tools::Region& region) {
    const Offer offer{htobe64(reinterpret_cast<std::uintptr_t>(region.data())), htobe32(region.rmr_context()),
                      htobe32(static_cast<std::uint32_t>(options_.size))};
    std::memcpy(messages_.data() + kReceives * sizeof offer, &offer, sizeof offer);
    DAT_LMR_TRIPLET triplet = messages_.at(kReceives * sizeof offer, sizeof offer);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = kRequest;
    tools::check(dat_ep_post_send(ep_.get(), 1, &triplet, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    await_request();
  }

  void move(const Offer& offer, bool read) {
    if (offer.length > options_.size) throw tools::Error("more is offered than there is room for");
    DAT_LMR_TRIPLET here = out_.at(0, offer.length);
    DAT_RMR_TRIPLET there{};
    there.rmr_context = offer.key;
    there.target_address = offer.address;
    there.segment_length = offer.length;
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = kRequest;
    const auto post = read ? dat_ep_post_rdma_read : dat_ep_post_rdma_write;
    tools::check(post(ep_.get(), 1, &here, cookie, &there, DAT_COMPLETION_DEFAULT_FLAG), "RDMA");
    await_request();
  }

  void leave() {
    tools::check(dat_ep_disconnect(ep_.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    await(DAT_CONNECTION_EVENT_DISCONNECTED);
  }

  const Options& options_;
  tools::Adapter adapter_;
  tools::Evd news_;
  tools::Region messages_;  // kReceives that come, and one that goes
  tools::Region out_;
  tools::Region back_;
  tools::Ep ep_;
  std::vector<std::uint64_t> arrived_;
  int requests_posted_ = 0;
  int requests_done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("rping through DAT", "dat_rping");
  app.require_subcommand(1);
  CLI::App* client = app.add_subcommand("client", "Connect, and offer the text");
  CLI::App* server = app.add_subcommand("server", "Accept, read the text and write it back");
  client->add_option("--to", options.to, "HOST:PORT of the server")->required();
  server->add_option("--port", options.qualifier, "Port to serve on; 0 takes a free one");
  for (CLI::App* command : {client, server}) {
    command->add_option("--ia", options.ia, "Interface adapter");
    command->add_option("--size", options.size, "Bytes of text")->check(CLI::Range(1, 1 << 20));
    command->add_option("--count", options.count, "Rounds")->check(CLI::Range(1, 1'000'000));
  }
  return tools::run_tool(app, argc, argv, [&] {
    Pinger pinger(options);
    if (client->parsed()) {
      pinger.connect();
      pinger.be_client();
    } else {
      pinger.accept();
      pinger.be_server();
    }
    return tools::kExitOk;
  });
}
