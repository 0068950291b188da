// SPDX-License-Identifier: BSD-3-Clause
// What the tests of event dispatchers, notification objects and events have in common.
#pragma once

#include <dat/udat.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/dat_fixture.h"
#include "support/threads.h"

namespace anydat::test {

// ---- software events: the number each carries is its pointer

DAT_EVENT software_event(std::uintptr_t value);
DAT_RETURN try_post(DAT_EVD_HANDLE evd, std::uintptr_t value = 1);
void post(DAT_EVD_HANDLE evd, std::uintptr_t value = 1);  // throws if it is refused
void post_range(DAT_EVD_HANDLE evd, std::uintptr_t first, int count);
std::uintptr_t value_of(const DAT_EVENT& event);
std::uintptr_t take(DAT_EVD_HANDLE evd);                   // dequeues the next; throws unless it is a software event
std::vector<std::uintptr_t> take_all(DAT_EVD_HANDLE evd);  // dequeues all there are

// ---- what an EVD and a CNO look like from outside

DAT_EVD_PARAM query_evd(DAT_EVD_HANDLE evd);
// How many events are queued. Requires: less than the queue holds, no thread blocked, and no attached stream that is
// UNSIGNALLED or SOLICITED_WAIT.
DAT_COUNT queued(DAT_EVD_HANDLE evd);
DAT_CNO_PARAM query_cno(DAT_CNO_HANDLE cno);
DAT_OS_WAIT_PROXY_AGENT no_agent();

// Parts of an EVD's state (section 5.4 of part 1).
inline constexpr unsigned kDeliveryPart = DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_DISABLED;
inline constexpr unsigned kWaitingPart = DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_UNWAITABLE;
inline constexpr unsigned kConfigurationPart = DAT_EVD_STATE_CONFIG_THRESHOLD;

DAT_EVD_FLAGS flags(unsigned bits);

class Cno : public Owner<dat_cno_free> {
 public:
  explicit Cno(const Ia& ia, DAT_OS_WAIT_PROXY_AGENT agent = no_agent());
};

struct CnoResult {
  DAT_RETURN rc;
  DAT_EVD_HANDLE evd;
};
CnoResult wait_cno(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
// Is a trigger latched? Takes it.
bool take_trigger(DAT_CNO_HANDLE cno);

struct EvdResult {
  DAT_RETURN rc;
  DAT_EVENT event;
  DAT_COUNT more;
};
EvdResult wait_evd(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold = 1);

// Threads that are blocked when the call returns.
class BlockedWait : public BlockedCall<EvdResult> {
 public:
  explicit BlockedWait(DAT_EVD_HANDLE evd, DAT_COUNT threshold = 1, DAT_TIMEOUT timeout = long_timeout(),
                       Caller caller = Caller::here());
};
// One with a time-out of its own, no longer than it must be for the thread to be seen blocked: a busy machine may need
// more than `time`, which is doubled until that comes about.
std::unique_ptr<BlockedWait> blocked_for(DAT_EVD_HANDLE evd, DAT_COUNT threshold, std::chrono::milliseconds& time,
                                         Caller caller = Caller::here());
class BlockedCnoWait : public BlockedCall<CnoResult> {
 public:
  explicit BlockedCnoWait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout = long_timeout(), Caller caller = Caller::here());
};

// Counts the calls of an agent, and keeps what it was told last.
class CountingAgent {
 public:
  DAT_OS_WAIT_PROXY_AGENT agent() { return {this, &CountingAgent::called}; }
  int calls() const { return calls_; }
  DAT_EVD_HANDLE last_evd() const { return last_evd_; }
  bool eventually_called(int times) const;

 private:
  static void called(DAT_PVOID self, DAT_EVD_HANDLE evd);

  std::atomic<int> calls_ = 0;
  std::atomic<DAT_EVD_HANDLE> last_evd_ = DAT_HANDLE_NULL;
};

// An SRQ that has never a buffer: setting its low watermark gives one async event at once (SRQ-LW-3).
class AsyncSource {
 public:
  explicit AsyncSource(const Ia& ia) : pz_(ia), srq_(ia, pz_, 4) {}
  void fire() const;
  DAT_HANDLE handle() const { return srq_.get(); }

 private:
  Pz pz_;
  Srq srq_;
};

// dat_ia_open of the wire's adapter, with the arguments left to the test.
DAT_RETURN open_ia(const Wire& wire, DAT_COUNT length, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia);

// A qualifier on which no service point listens.
DAT_CONN_QUAL dead_qualifier(const Ia& ia);
void connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier);  // asks, does not wait

// A software EVD on an open adapter.
class EvdTest : public testing::TestWithParam<Wire> {
 protected:
  static constexpr DAT_COUNT kLength = 16;

  Ia ia{GetParam()};
  Evd evd{ia, DAT_EVD_SOFTWARE_FLAG, kLength};
};

// Two sides that can exchange messages: a server that receives and a client that sends.
class MessageTest : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kBytes = 64;
  static constexpr int kBuffers = 64;

  // Buffer `index` with cookie `index`.
  void post_recv(const Ep& ep, int index, DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);
  void send(const Ep& ep, int index, DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG,
            std::size_t bytes = kBytes / 2);

  Side server{GetParam()};
  Side client{GetParam()};
  Lmr sink{server.ia, server.pz, kBuffers* kBytes};
  Lmr source{client.ia, client.pz, kBuffers* kBytes};
};

}  // namespace anydat::test

#define ANYDAT_OVER_ALL_WIRES(suite) INSTANTIATE_TEST_SUITE_P(Wires, suite, testing::ValuesIn(all_wires()), wire_name)
#define ANYDAT_OVER_ONE_WIRE(suite) INSTANTIATE_TEST_SUITE_P(Wires, suite, testing::ValuesIn(one_wire()), wire_name)
