// SPDX-License-Identifier: BSD-3-Clause
// A member of a small network: one that sends, or one that receives from others through one SRQ. It keeps the books of
// its DTOs and of the ends of its connections, and exits with 0 only if they are in order. What it saw, it prints:
//
//   serving on QUALIFIER            a receiver, when it may be connected to
//   connected
//   connection over: STORY; N messages
//   memory grew by N KiB at most    when all is over
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "hosts/ledger.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

struct Options {
  std::string ia = "soft";
  std::size_t bytes = 1000;
  std::chrono::milliseconds pause{0};  // before a receive is posted again, or the next Send
  std::chrono::seconds patience{60};   // with which it waits for any event
  // A receiver.
  int buffers = 32;
  int connections = 1;
  // A sender.
  std::string to;
  DAT_CONN_QUAL qualifier = 0;
  int count = 100;
  bool trespass = false;  // end by a Write to memory that the peer has not offered
};

void print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

DAT_EVENT next_event(DAT_EVD_HANDLE evd, const Options& options, const char* what) {
  const auto event = wait_event(evd, options.patience);
  if (!event) throw std::runtime_error(fmt::format("{} did not come in {} s", what, options.patience.count()));
  return *event;
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Wire wire_of(const Options& options) {
  return {.name = "", .ia_name = options.ia, .env = {}};
}

int receive(const Options& options) {
  Side side(wire_of(options));
  const Srq srq(side.ia, side.pz, options.buffers);
  // One dispatcher for all: what comes is handled in the order in which it came.
  const Evd news(side.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG),
                 4 * options.buffers + 64);
  const Lmr memory(side.ia, side.pz, static_cast<std::size_t>(options.buffers) * options.bytes);
  Ledger ledger;
  std::map<std::uint64_t, std::size_t> buffer_of;
  const auto post = [&](std::size_t buffer) {
    DAT_LMR_TRIPLET triplet = memory.triplet(buffer * options.bytes, options.bytes);
    const DAT_DTO_COOKIE cookie = ledger.post();
    buffer_of[cookie.as_64] = buffer;
    require(dat_srq_post_recv(srq.get(), 1, &triplet, cookie), "dat_srq_post_recv");
  };
  for (int i = 0; i < options.buffers; ++i) post(static_cast<std::size_t>(i));
  const Psp psp(side.ia, news);
  print(fmt::format("serving on {}", psp.qualifier()));

  struct Guest {
    Ep ep;
    EndOfConnection end;
    int messages = 0;
  };
  std::map<DAT_EP_HANDLE, Guest> guests;
  const long peak_before_kib = peak_kib();
  for (int over = 0; over < options.connections;) {
    const DAT_EVENT event = next_event(news.get(), options, "anything");
    if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
      DAT_EP_ATTR attr = default_srq_ep_attr();
      Ep ep(side.ia, side.pz, {news.get(), side.request.get(), news.get()}, srq, attr);
      const DAT_EP_HANDLE handle = ep.get();
      guests[handle].ep = std::move(ep);
      require(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, handle, 0, nullptr), "dat_cr_accept");
    } else if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
      const auto& completion = event.event_data.dto_completion_event_data;
      ledger.complete(completion);
      guests.at(completion.ep_handle).messages += completion.status == DAT_DTO_SUCCESS;
      if (options.pause.count() > 0) std::this_thread::sleep_for(options.pause);  // the receiver is slow
      const auto found = buffer_of.find(completion.user_cookie.as_64);
      post(found->second);
      buffer_of.erase(found);
    } else {
      Guest& guest = guests.at(event.event_data.connect_event_data.ep_handle);
      guest.end.tell(event.event_number);
      if (!guest.end.over()) continue;
      print(fmt::format("connection over: {}; {} messages", guest.end.story(), guest.messages));
      ++over;
    }
  }
  // All buffers are back: posted again, and none taken.
  EXPECT_EQ(ledger.open(), static_cast<std::size_t>(options.buffers));
  EXPECT_EQ(srq.available(), options.buffers);
  EXPECT_EQ(srq.outstanding(), options.buffers);
  EXPECT_EQ(poll_event(news.get()), std::nullopt) << "an event after the last";
  print(fmt::format("memory grew by {} KiB at most", peak_kib() - peak_before_kib));
  return 0;
}

sockaddr_storage address_of(const std::string& text) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&storage, &v4, sizeof v4);
  } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    std::memcpy(&storage, &v6, sizeof v6);
  } else {
    throw std::runtime_error(text + " is no address");
  }
  return storage;
}

int send(const Options& options) {
  constexpr std::size_t kInFlight = 16;
  Side side(wire_of(options));
  Ep ep(side);
  const Lmr memory(side.ia, side.pz, options.bytes);
  Ledger ledger;
  EndOfConnection end;
  int sent = 0;
  const auto finish = [&] {
    while (!end.over()) end.tell(next_event(side.connect.get(), options, "the end").event_number);
    while (ledger.open() > 0)
      ledger.complete(next_event(side.request.get(), options, "a completion").event_data.dto_completion_event_data);
    print(fmt::format("connection over: {}; {} messages", end.story(), ledger.successes()));
    EXPECT_EQ(poll_event(side.connect.get()), std::nullopt) << "an event after the last";
  };

  sockaddr_storage address = address_of(options.to);
  require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), options.qualifier, 30'000'000, 0,
                         nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  end.tell(next_event(side.connect.get(), options, "an answer").event_number);
  if (end.over()) {
    finish();
    return 0;
  }
  print("connected");
  const long peak_before_kib = peak_kib();
  for (; sent < options.count; ++sent) {
    if (const auto event = poll_event(side.connect.get())) {
      end.tell(event->event_number);
      break;
    }
    if (ledger.open() == kInFlight || options.pause.count() > 0) {
      if (options.pause.count() > 0) std::this_thread::sleep_for(options.pause);  // a steady trickle
      // The end of the connection completes whatever is open.
      while (ledger.open() > 0)
        ledger.complete(next_event(side.request.get(), options, "a completion").event_data.dto_completion_event_data);
    }
    DAT_LMR_TRIPLET triplet = memory.triplet();
    const DAT_DTO_COOKIE cookie = ledger.post();
    const DAT_RETURN rc = dat_ep_post_send(ep.get(), 1, &triplet, cookie, DAT_COMPLETION_DEFAULT_FLAG);
    if (rc == DAT_SUCCESS) continue;
    EXPECT_TRUE(is_type(rc, DAT_INVALID_STATE)) << describe(rc);
    ledger.take_back(cookie);
    break;
  }
  if (options.trespass) {
    DAT_LMR_TRIPLET triplet = memory.triplet();
    DAT_RMR_TRIPLET remote{};
    remote.rmr_context = 0x5eed1e55;
    remote.target_address = 0x1000;
    remote.segment_length = triplet.segment_length;
    require(dat_ep_post_rdma_write(ep.get(), 1, &triplet, ledger.post(), &remote, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
  } else if (sent == options.count) {
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  }
  finish();
  print(fmt::format("memory grew by {} KiB at most", peak_kib() - peak_before_kib));
  return 0;
}

}  // namespace
}  // namespace anydat::test

int main(int argc, char** argv) {
  using namespace anydat::test;
  testing::InitGoogleTest(&argc, argv);
  CLI::App app("A member of a small network", "member");
  app.require_subcommand(1);
  Options options;
  int pause_ms = 0;
  int patience_s = 60;
  const auto add = [&](const char* name, const char* description) {
    CLI::App* command = app.add_subcommand(name, description);
    command->add_option("--ia", options.ia, "Interface adapter");
    command->add_option("--bytes", options.bytes, "Bytes in a message, or in a buffer");
    command->add_option("--pause", pause_ms, "Milliseconds before a buffer is posted again, or the next message sent");
    command->add_option("--patience", patience_s, "Seconds to wait for any event");
    return command;
  };
  CLI::App* receiver = add("receive", "Receive through one SRQ");
  receiver->add_option("--buffers", options.buffers, "Buffers in it");
  receiver->add_option("--connections", options.connections, "Connections to serve");
  CLI::App* sender = add("send", "Send over one connection");
  sender->add_option("--to", options.to, "Address of the receiver")->required();
  sender->add_option("--qual", options.qualifier, "Its qualifier")->required();
  sender->add_option("--count", options.count, "Messages");
  sender->add_flag("--trespass", options.trespass, "End by a Write to memory that nobody has offered");
  CLI11_PARSE(app, argc, argv);
  options.pause = std::chrono::milliseconds(pause_ms);
  options.patience = std::chrono::seconds(patience_s);
  try {
    receiver->parsed() ? receive(options) : send(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "member: {}\n", error.what());
    return 1;
  }
  return testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
}
