// SPDX-License-Identifier: BSD-3-Clause
// One endpoint in another process that does what it is told, so that tests can stop or kill the other end of a
// connection, or close its adapter.
#pragma once

#include <dat/udat.h>

#include <string>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {

// Every method returns when the other process has done its part, and throws if that fails.
class RemotePeer {
 public:
  explicit RemotePeer(const Wire& wire);

  void connect(DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE);  // asks, does not wait
  DAT_CONN_QUAL listen();
  void accept();  // waits for a request to listen() and accepts it
  void post_receives(int count, std::size_t bytes);
  void post_sends(int count, std::size_t bytes);
  void disconnect(DAT_CLOSE_FLAGS flags);
  void free_endpoint();
  void close_adapter(DAT_CLOSE_FLAGS flags);  // abruptly: with all that was made

  DAT_EVENT_NUMBER next_event();  // of its connect EVD
  DAT_DTO_COMPLETION_STATUS next_request_completion();
  DAT_DTO_COMPLETION_STATUS next_receive_completion();

  void stop();  // returns when the process stands still
  void resume();
  void kill() { process_.kill(); }

 private:
  std::string tell(const std::string& command);

  PeerProcess process_;
};

}  // namespace anydat::test
