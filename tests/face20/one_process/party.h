// SPDX-License-Identifier: BSD-3-Clause
// One end of a conversation within a process, of either version of the interface: the same source, compiled into the
// test program for uDAPL 2.0 and into a module that the program loads for 1.2. Nothing here has a type of DAT's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace anydat::test {

// What has memory that the peer reaches by RDMA.
struct Place {
  std::uint64_t address;
  std::uint32_t context;
};

// An adapter of its own with one endpoint, and memory of each kind: ordinary, and such as other processes can map. Each
// call throws when something is wrong or does not come in time, or notes it for well().
class Party {
 public:
  enum class Memory { ordinary, shareable };
  static constexpr std::size_t kBytes = 200'000;  // of each memory: more than goes into cells

  virtual ~Party() = default;

  virtual std::uint64_t listen() = 0;                   // at a qualifier of the library's choice
  virtual bool listen_at(std::uint64_t qualifier) = 0;  // false: it is in use
  virtual void call(std::uint64_t qualifier) = 0;
  virtual void accept() = 0;             // the next request
  virtual std::string next_event() = 0;  // of the connection, by its name

  // Each waits for what it begins. The bytes are made of the seed.
  virtual void offer_buffer() = 0;
  virtual void send(std::size_t bytes, unsigned seed) = 0;
  virtual void receive(std::size_t bytes, unsigned seed) = 0;
  virtual Place place(Memory memory) = 0;
  virtual void fill(Memory memory, std::size_t bytes, unsigned seed) = 0;
  virtual bool holds(Memory memory, std::size_t bytes, unsigned seed) = 0;
  virtual void write(const Place& to, std::size_t bytes, unsigned seed) = 0;
  virtual void read(const Place& from, std::size_t bytes, unsigned seed) = 0;

  virtual bool knows_its_objects() = 0;    // or refuses all of them as no handles
  virtual std::string wire() = 0;          // by anydat_ep_wire()
  virtual bool counts_its_own() = 0;       // by anydat_get_counters(), as many messages as it has sent
  virtual std::string last_refusal() = 0;  // what anydat_last_error() says after a call that was refused
  virtual void leave_abruptly() = 0;       // closes the adapter with all that is open in it

  // Whether nothing was wrong since it was made. Of one in the module; in the program itself the test fails.
  virtual bool well() const = 0;
};

// A party of the version that the source is compiled for.
std::unique_ptr<Party> make_party(const std::string& wire);
// The same, as the module exports it.
inline constexpr const char* kMakeParty = "anydat_test_make_party";
using MakeParty = Party*(const char* wire);

}  // namespace anydat::test
