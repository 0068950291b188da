// SPDX-License-Identifier: BSD-3-Clause
// A program that stands still while several peers send, and then says in which order their messages have come; as often
// as it is asked to.
#pragma once

#include <dat/udat.h>

#include <string>

#include "support/peer_process.h"

namespace anydat::test {

class StandingReceiver {
 public:
  // So many peers, which send so many messages in all each time, of at most that many bytes.
  StandingReceiver(const Wire& wire, int peers, int messages, std::size_t bytes);

  DAT_CONN_QUAL qualifier() const { return qualifier_; }
  void expect_peer();  // the next has been let in; the first is called 'a'
  void stop();         // by SIGSTOP
  // From here on it takes what has come. A letter for each message.
  std::string resume_and_tell();
  void end();  // once the peers need it no more

  // The first message of each comes before the second of any, and after each message no peer is ahead of another by
  // more than so many.
  static void expect_fair(const std::string& order, int peers, int most_ahead);

 private:
  PeerProcess process_;
  DAT_CONN_QUAL qualifier_ = 0;
};

}  // namespace anydat::test
