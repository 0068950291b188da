// SPDX-License-Identifier: BSD-3-Clause
// A port cannot be two processes'. A qualifier that is none could, at two of its ports: names that one process of a
// network namespace can have (os/claimed_name.h) see to it that it is not. They are of no version and of no user.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "nic/types.h"

namespace anydat::nic {

// At the addresses of a network device, over TCP; "*": at all of the host's.
inline std::string tcp_claim(std::string_view device, ConnQual qual) {
  return fmt::format("anydat/tcp/{}/{}", device, qual);
}

// Of an RDMA device.
inline std::string rdma_claim(std::string_view device, ConnQual qual) {
  return fmt::format("anydat/rdma/{}/{}", device, qual);
}

}  // namespace anydat::nic
