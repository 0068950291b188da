// SPDX-License-Identifier: BSD-3-Clause
// A local socket that listens under a service point's name and is played by hand.
#pragma once

#include <dat/udat.h>

#include <cstdint>

#include "raw_peer.h"
#include "seed.h"

namespace anydat::test {

class FakeService {
 public:
  explicit FakeService(Random& random);

  DAT_CONN_QUAL qualifier() const { return qualifier_; }
  RawPeer accept();

 private:
  Fd socket_;
  DAT_CONN_QUAL qualifier_ = 0;
};

// Plays the listening side of the handshake; true if there is a link then.
bool welcome(RawPeer& peer);
bool welcome(RawPeer& peer, const Fd& regions);  // with this region table
// The same and the next step: the name of the attempt that came over the link.
std::uint32_t asked(RawPeer& peer);

// What a passive side calls the connection that acceptance() answers.
inline constexpr std::uint32_t kFakeConnection = 5;
RawCell acceptance(std::uint32_t connection, std::uint32_t private_data_bytes = 0);

}  // namespace anydat::test
