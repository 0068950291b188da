// SPDX-License-Identifier: BSD-3-Clause
#include "support/wire.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace anydat::test {

std::ostream& operator<<(std::ostream& out, const Wire& wire) {
  return out << wire.name;
}

namespace {

// The adapters that the environment names, each a wire; for those that not every machine has.
std::vector<Wire> wires_of(const char* adapters) {
  std::vector<Wire> wires;
  std::istringstream names(adapters);
  for (std::string adapter; std::getline(names, adapter, ',');) {
    std::string name = adapter;
    std::replace(name.begin(), name.end(), '-', '_');  // a test's name has letters, digits and underscores only
    wires.push_back({.name = name, .ia_name = adapter, .env = {}});
  }
  return wires;
}

const std::vector<Wire>& wires_of_soft() {
  static const std::vector<Wire> wires{
      // Large messages are copied from process to process, so that a receiver needs no help of a stopped sender; unless
      // that one cannot be copied from.
      {.name = "shm",
       .ia_name = "soft-lo",
       .env = {{"DAT_WIRE", "shm"}},
       .held_for_stopped_sender = 8,
       .stopped_sender_by_hand = true},
      // The same with that forbidden, as it may be in a container: large messages go through shared memory in pieces.
      {.name = "shm_ring",
       .ia_name = "soft-lo",
       .env = {{"DAT_WIRE", "shm"}, {"DAT_SHM_COPY", "ring"}},
       .held_for_stopped_sender = 8},
      // iWARP over TCP, as between hosts.
      {.name = "tcp", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "tcp"}}, .taken_ahead = 32 << 20},
  };
  return wires;
}

}  // namespace

const std::vector<Wire>& all_wires() {
  if (const char* adapters = std::getenv("ANYDAT_TEST_ADAPTERS")) {
    static const std::vector<Wire> named = wires_of(adapters);
    return named;
  }
  return wires_of_soft();
}

std::vector<Wire> one_wire() {
  return {all_wires().front()};
}

const Wire& wire_by_name(const std::string& name) {
  for (const auto* wires : {&all_wires(), &wires_of_soft()}) {
    for (const Wire& wire : *wires) {
      if (wire.name == name) return wire;
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
    if (old != nullptr && value == old) continue;
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
