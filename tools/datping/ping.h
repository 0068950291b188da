// SPDX-License-Identifier: BSD-3-Clause
// What the two halves of datping agree on.
#ifndef ANYDAT_TOOLS_DATPING_PING_H
#define ANYDAT_TOOLS_DATPING_PING_H

#include <cstdint>
#include <string>

#include "common/connection.h"

namespace datping {

inline constexpr DAT_CONN_QUAL kDefaultQualifier = 21121;

struct Options {
  std::string ia = tools::kDefaultIa;
  bool serve = false;
  DAT_CONN_QUAL qualifier = kDefaultQualifier;  // serve: where to listen; 0 lets the library choose
  std::string to;                               // client: the server; empty starts one of our own
  std::uint64_t count = 100;
  std::uint64_t size = 64;  // client: bytes a message; server: the longest it takes
  bool srq = false;
  double timeout_s = 5;
  double interval_s = 0;
  int control_fd = -1;  // serve: set by the process that started us
};

// The client's private data: the size of the messages it is going to send, so that the server can post buffers that
// fit. Travels in the byte order of the magic, which tells a stranger's request and a foreign byte order apart.
struct Request {
  std::uint64_t magic = kMagic;
  std::uint64_t size = 0;

  static constexpr std::uint64_t kMagic = 0x64617470696e6731;
};

int serve(const Options& options);
int ping(const Options& options, const tools::Peer& peer);

// The address of the adapter itself, for a client whose server runs beside it.
tools::Peer peer_on_this_host(const std::string& ia, DAT_CONN_QUAL qualifier);

}  // namespace datping

#endif
