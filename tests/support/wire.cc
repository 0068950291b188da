// SPDX-License-Identifier: BSD-3-Clause
#include "support/wire.h"

#include <cstdlib>
#include <ostream>
#include <stdexcept>

namespace anydat::test {

std::ostream& operator<<(std::ostream& out, const Wire& wire) {
  return out << wire.name;
}

const std::vector<Wire>& all_wires() {
  static const std::vector<Wire> wires{
      // Large messages are copied from process to process, so that a receiver needs no help of a stopped sender.
      {.name = "shm", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "shm"}}, .held_for_stopped_sender = 0},
      // The same with that forbidden, as it may be in a container: large messages go through shared memory in pieces.
      {.name = "shm_ring",
       .ia_name = "soft-lo",
       .env = {{"DAT_WIRE", "shm"}, {"DAT_SHM_COPY", "ring"}},
       .held_for_stopped_sender = 8},
  };
  return wires;
}

const Wire& wire_by_name(const std::string& name) {
  for (const Wire& wire : all_wires()) {
    if (wire.name == name) {
      return wire;
    }
  }
  throw std::runtime_error("no wire is called " + name);
}

std::string wire_name(const testing::TestParamInfo<Wire>& info) {
  return info.param.name;
}

ScopedEnv::ScopedEnv(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    const char* old = std::getenv(name.c_str());
    before_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

ScopedEnv::~ScopedEnv() {
  for (const auto& [name, value] : before_) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
}

}  // namespace anydat::test
