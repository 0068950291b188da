// SPDX-License-Identifier: BSD-3-Clause
// A program that runs out of memory: every single allocation of the library fails in turn, alone or with all that
// follow. Each call works or says that resources are short, each attempt and each request has its end, and closing
// always works.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

#include "footprint.h"
#include "no_memory.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kSmall = 100;
constexpr std::size_t kLarge = 100'000;

// What happened, without allocating anything.
struct Outcome {
  const char* last_step = "";
  const char* wrong = nullptr;  // what must not happen
  DAT_RETURN code = DAT_SUCCESS;
  bool complete = false;

  // True if the call worked. Else it must have said that resources are short.
  bool works(DAT_RETURN rc, const char* what) {
    last_step = what;
    if (rc == DAT_SUCCESS) {
      return true;
    }
    if (DAT_GET_TYPE(rc) != DAT_INSUFFICIENT_RESOURCES && wrong == nullptr) {
      wrong = what;
      code = rc;
    }
    return false;
  }
  bool must(bool condition, const char* what) {
    if (!condition && wrong == nullptr) {
      wrong = what;
    }
    return condition;
  }
};

struct Half {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context = 0;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  bool over = false;  // its connection, or the attempt

  bool open(Outcome& outcome, const std::string& name, std::array<std::byte, 2 * kLarge>& memory) {
    const auto flags = static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory.data();
    DAT_RMR_CONTEXT remote = 0;
    DAT_VLEN size = 0;
    DAT_VADDR address = 0;
    return outcome.works(dat_ia_open(const_cast<DAT_NAME_PTR>(name.c_str()), 16, &async, &ia), "dat_ia_open") &&
           outcome.works(dat_pz_create(ia, &pz), "dat_pz_create") &&
           outcome.works(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create") &&
           outcome.works(dat_evd_create(ia, 64, cno, flags, &evd), "dat_evd_create") &&
           outcome.works(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL), "dat_cno_modify_agent") &&
           outcome.works(dat_evd_resize(evd, 128), "dat_evd_resize") &&
           outcome.works(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, memory.size(), pz, DAT_MEM_PRIV_ALL_FLAG,
                                        &lmr, &context, &remote, &size, &address),
                         "dat_lmr_create");
  }
  DAT_LMR_TRIPLET segment(std::array<std::byte, 2 * kLarge>& memory, std::size_t offset, std::size_t length) const {
    DAT_LMR_TRIPLET triplet{};
    triplet.lmr_context = context;
    triplet.virtual_address = reinterpret_cast<DAT_VADDR>(memory.data() + offset);
    triplet.segment_length = length;
    return triplet;
  }
  void close(Outcome& outcome) {
    if (ia != DAT_HANDLE_NULL) {
      outcome.must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS, "dat_ia_close");
    }
  }
};

// A server with an SRQ and a client, whose request comes by way of a desk that hands it off; small messages that arrive
// before there are buffers, and large ones.
class Scenario {
 public:
  Scenario(Outcome& outcome, const std::string& name) : outcome_(outcome), name_(name) {}

  void run() {
    if (make() && connect() && send() && receive() && disconnect()) {
      outcome_.complete = true;
    }
    client_.close(outcome_);
    server_.close(outcome_);
    desk_.close(outcome_);
  }

 private:
  bool make() {
    DAT_SRQ_ATTR srq{.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
    const DAT_EP_ATTR srq_ep = srq_attr_;
    const DAT_EP_ATTR plain_ep = plain_attr_;
    return server_.open(outcome_, name_, server_memory()) && client_.open(outcome_, name_, client_memory()) &&
           open_desk() && outcome_.works(dat_srq_create(server_.ia, server_.pz, &srq, &srq_), "dat_srq_create") &&
           outcome_.works(dat_srq_resize(srq_, 16), "dat_srq_resize") &&
           outcome_.works(dat_psp_create_any(server_.ia, &qualifier_, server_.evd, DAT_PSP_CONSUMER_FLAG, &psp_),
                          "dat_psp_create_any") &&
           outcome_.works(dat_ep_create_with_srq(server_.ia, server_.pz, server_.evd, server_.evd, server_.evd, srq_,
                                                 const_cast<DAT_EP_ATTR*>(&srq_ep), &server_.ep),
                          "dat_ep_create_with_srq") &&
           outcome_.works(dat_ep_create(client_.ia, client_.pz, client_.evd, client_.evd, client_.evd,
                                        const_cast<DAT_EP_ATTR*>(&plain_ep), &client_.ep),
                          "dat_ep_create");
  }

  bool open_desk() {
    return outcome_.works(dat_ia_open(const_cast<DAT_NAME_PTR>(name_.c_str()), 16, &desk_.async, &desk_.ia),
                          "dat_ia_open") &&
           outcome_.works(dat_evd_create(desk_.ia, 16, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &desk_.evd),
                          "dat_evd_create") &&
           outcome_.works(dat_psp_create_any(desk_.ia, &desk_qualifier_, desk_.evd, DAT_PSP_CONSUMER_FLAG, &desk_psp_),
                          "dat_psp_create_any");
  }

  bool connect() {
    std::array<char, 32> data{};
    return outcome_.works(dat_ep_connect(client_.ep, loopback(), desk_qualifier_, 10'000'000, data.size(), data.data(),
                                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
                          "dat_ep_connect") &&
           step_until("the attempt ends", [this] { return established_ == 2 || client_.over; }) && established_ == 2;
  }

  bool send() {
    bool posted = true;
    for (int i = 0; i < 3 && posted; ++i) {
      posted = post_send(i * kSmall, kSmall);
    }
    return posted && post_send(0, kLarge) && post_send(0, kLarge) && post_send(0, kSmall) &&
           step_until("a small message completes", [this] { return completions_ >= 3 || either_over(); });
  }

  bool receive() {
    for (int i = 0; i < 6; ++i) {
      DAT_LMR_TRIPLET segment = server_.segment(server_memory(), 0, kLarge);
      if (!outcome_.works(dat_srq_post_recv(srq_, 1, &segment, {}), "dat_srq_post_recv")) {
        return false;
      }
    }
    return step_until("everything completes", [this] { return completions_ == 12 || either_over(); });
  }

  bool disconnect() {
    return outcome_.works(dat_ep_disconnect(client_.ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect") &&
           step_until("both ends are over", [this] { return client_.over && server_.over; }) && completions_ == 12 &&
           outcome_.works(dat_ep_reset(client_.ep), "dat_ep_reset");
  }

  bool post_send(std::size_t offset, std::size_t length) {
    DAT_LMR_TRIPLET segment = client_.segment(client_memory(), offset, length);
    if (dat_ep_post_send(client_.ep, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS) {
      return true;
    }
    // The connection may have broken for want of memory, which ends the scenario in order.
    DAT_EP_STATE state{};
    DAT_BOOLEAN recv_idle{}, request_idle{};
    dat_ep_get_status(client_.ep, &state, &recv_idle, &request_idle);
    outcome_.must(state != DAT_EP_STATE_CONNECTED, "dat_ep_post_send");
    return false;
  }

  bool either_over() const { return client_.over || server_.over; }

  template <typename Condition>
  bool step_until(const char* what, Condition&& condition) {
    outcome_.last_step = what;
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (!condition()) {
      if (established_ == 0) {
        hand_off();
      }
      take(server_);
      take(client_);
      if (!outcome_.must(std::chrono::steady_clock::now() < deadline, what)) {
        return false;
      }
    }
    return !either_over() || completions_ == 12;
  }

  void hand_off() {
    DAT_EVENT event{};
    if (dat_evd_dequeue(desk_.evd, &event) != DAT_SUCCESS) {
      return;
    }
    const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
    if (!outcome_.works(dat_cr_handoff(request, qualifier_), "dat_cr_handoff")) {
      outcome_.must(dat_cr_reject(request) == DAT_SUCCESS, "dat_cr_reject");
    }
  }

  void take(Half& half) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    if (dat_evd_wait(half.evd, 500, 1, &event, &more) != DAT_SUCCESS) {
      return;
    }
    switch (event.event_number) {
      case DAT_CONNECTION_REQUEST_EVENT: {
        const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
        if (!outcome_.works(dat_cr_accept(request, half.ep, 0, nullptr), "dat_cr_accept")) {
          outcome_.must(dat_cr_reject(request) == DAT_SUCCESS, "dat_cr_reject");
          half.over = true;
        }
        break;
      }
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        ++established_;
        break;
      case DAT_DTO_COMPLETION_EVENT:
        ++completions_;
        break;
      default:
        half.over = true;
    }
  }

  static std::array<std::byte, 2 * kLarge>& server_memory() {
    static std::array<std::byte, 2 * kLarge> memory;
    return memory;
  }
  static std::array<std::byte, 2 * kLarge>& client_memory() {
    static std::array<std::byte, 2 * kLarge> memory;
    return memory;
  }

  Outcome& outcome_;
  const std::string& name_;
  const DAT_EP_ATTR srq_attr_ = default_srq_ep_attr();
  const DAT_EP_ATTR plain_attr_ = default_ep_attr();
  Half server_;
  Half client_;
  Half desk_;
  DAT_SRQ_HANDLE srq_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
  DAT_CONN_QUAL qualifier_ = 0;
  DAT_PSP_HANDLE desk_psp_ = DAT_HANDLE_NULL;
  DAT_CONN_QUAL desk_qualifier_ = 0;
  int established_ = 0;
  int completions_ = 0;
};

// Argument: "one" or "all", which fail. Says how many allocations there were once all of it has worked.
void play_forgetful_program(RoleContext& context) {
  const ScopedEnv env(context.wire.env);
  const std::string& name = context.wire.ia_name;
  const NoMemory::Failing which = context.arguments.at(0) == "all" ? NoMemory::Failing::all : NoMemory::Failing::one;
  patience();
  loopback();
  Outcome first;
  Scenario(first, name).run();
  if (!first.complete) {
    context.parent.say(fmt::format("it does not even work with memory: {}", first.last_step));
    return;
  }
  const Footprint before = Footprint::here();
  for (long allocations = 0;; ++allocations) {
    context.parent.say(fmt::format("{}", allocations));
    Outcome outcome;
    {
      Scenario scenario(outcome, name);
      const NoMemory after(allocations, which);
      scenario.run();
    }
    if (outcome.wrong != nullptr) {
      context.parent.say(fmt::format("after {} allocations: {} ({:#x}); the last step was: {}", allocations,
                                     outcome.wrong, outcome.code, outcome.last_step));
      return;
    }
    if (!NoMemory::has_failed_any()) {
      expect_back_to(before);
      context.parent.say(outcome.complete && !testing::Test::HasFailure() ? "well" : "badly");
      return;
    }
  }
}

const Role kForgetfulProgram("forgetful_program", play_forgetful_program);

class LackOfMemory : public testing::TestWithParam<Wire> {
 protected:
  void play(const std::string& which) {
    PeerProcess program("forgetful_program", GetParam(), {which});
    std::string line = "nothing", last;
    try {
      while (true) {
        last = line;
        line = program.channel().hear(2 * patience());
        if (line.find_first_not_of("0123456789") != std::string::npos) {
          break;
        }
      }
    } catch (const std::exception& error) {
      FAIL() << "with allocation " << line << " failing: " << error.what();
    }
    EXPECT_EQ(line, "well") << "with allocation " << last << " failing";
    fmt::print("{} allocations have failed in turn\n", last);
    EXPECT_EQ(program.wait_exit(), 0);
  }
};

TEST_P(LackOfMemory, ForOneAllocationIsAnErrorAndNoCrash) {
  play("one");
}

TEST_P(LackOfMemory, FromOneAllocationOnIsAnErrorAndNoCrash) {
  play("all");
}

INSTANTIATE_TEST_SUITE_P(Wires, LackOfMemory, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
