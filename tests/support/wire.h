// SPDX-License-Identifier: BSD-3-Clause
// The wires that the conformance tests run over.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace anydat::test {

// One way in which two endpoints can reach each other: an IA name and the environment that dat_ia_open must see.
struct Wire {
  std::string name;                        // as it appears in the test's name
  std::string ia_name;                     // what dat_ia_open is given
  std::map<std::string, std::string> env;  // set while the IA is opened

  // The buffers that one endpoint takes for messages whose sender stopped after posting them; at most this many.
  int held_for_stopped_sender = 1;
  // That sender is played by hand (conformance/half_sender.h), since one that uses the library leaves none.
  bool stopped_sender_by_hand = false;
  // How much of a message can leave its sender before the receiver has a buffer for it, at most.
  std::size_t taken_ahead = 0;
};

std::ostream& operator<<(std::ostream& out, const Wire& wire);

// Every wire this build can test, or the adapters that ANYDAT_TEST_ADAPTERS names, separated by commas. Suites are
// instantiated with
//   INSTANTIATE_TEST_SUITE_P(Wires, Suite, testing::ValuesIn(all_wires()), wire_name);
const std::vector<Wire>& all_wires();
// The first of them, for what takes long and is the same over each.
std::vector<Wire> one_wire();
const Wire& wire_by_name(const std::string& name);
std::string wire_name(const testing::TestParamInfo<Wire>& info);

// Environment variables for the length of a scope. Requires: no other thread reads or writes the environment; but those
// that have the value already are left alone, since the lock that setenv() takes is not given back in the child of a
// fork.
class ScopedEnv {
 public:
  explicit ScopedEnv(const std::map<std::string, std::string>& variables);
  ~ScopedEnv();
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace anydat::test
