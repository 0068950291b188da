// SPDX-License-Identifier: BSD-3-Clause
// One connection through a proxy, from dat_ep_connect to the last event of both ends, with traffic of every kind.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "ledger.h"
#include "support/dat_fixture.h"

namespace anydat::test {

// What outlives the trials: two adapter instances, memory, and the shared receive queue of the server.
class Stage {
 public:
  explicit Stage(const Wire& wire);

  static constexpr int kShared = 32;                       // buffers in the SRQ
  static constexpr std::size_t kMessageBytes = 32 * 1024;  // the most
  static constexpr int kSlots = 16;                        // that a client uses in turn

  Side server;
  Side client;
  Srq srq;
  Lmr shared_buffers;   // the SRQ's
  Lmr target;           // what clients write to and read from
  Lmr client_receives;  // kSlots messages
  Lmr client_sources;   // kSlots messages: of Sends and Writes
  Lmr client_sinks;     // of Reads
  Lmr server_sources;

  void post_shared(std::size_t buffer);
  std::size_t take_shared(std::uint64_t number);  // the buffer of that post
  Ledger shared;                                  // of the SRQ

 private:
  std::map<std::uint64_t, std::size_t> buffer_of_;  // by the number of the post
};

class Trial {
 public:
  struct Traffic {
    int operations = 5;  // of the client, of all kinds; then it disconnects
    std::size_t bytes_max = 5000;
    std::uint64_t seed = 1;
  };

  Trial(Stage& stage, DAT_CONN_QUAL through, const Traffic& traffic, DAT_TIMEOUT connect_timeout);

  // One look at all dispatchers; true if something was there.
  bool step();
  // Both ends are over and every DTO has completed.
  bool over() const;
  std::string state() const;  // in words

  const EndOfConnection& client_end() const { return client_end_; }
  // All that the client posted succeeded, and arrived as it was sent.
  bool all_done() const { return posted_ == traffic_.operations && failed_ == 0; }

 private:
  void client_event(const DAT_EVENT& event);
  void server_event(const DAT_EVENT& event);
  void received_by_server(const DAT_DTO_COMPLETION_EVENT_DATA& completion);
  void post_more();
  bool post_one();
  void accept(DAT_CR_HANDLE cr);
  void answer(DAT_EP_HANDLE ep);

  Stage& stage_;
  const Traffic traffic_;
  std::mt19937_64 random_;
  Ep client_ep_;
  EndOfConnection client_end_;
  // What the server has accepted. A client that is cut off before it has an answer may ask once more, in an older way
  // (RFC 6581, section 7), so this can be two.
  struct Guest {
    Ep ep;
    EndOfConnection end;
  };
  std::map<DAT_EP_HANDLE, Guest> guests_;
  Ledger client_receives_;
  Ledger client_requests_;
  Ledger server_requests_;
  struct Read {
    std::uint64_t number;
    std::size_t slot;
    std::size_t bytes;
  };
  std::deque<std::size_t> sent_bytes_;  // of Sends in the order of posting, which is that of arrival
  std::vector<Read> reads_;
  int posted_ = 0;
  int failed_ = 0;
  int received_by_client_ = 0;
  bool leaving_ = false;
};

}  // namespace anydat::test
