// SPDX-License-Identifier: BSD-3-Clause
// A process with one connection to another such process, each told step by step what to do, in the circumstances that
// programs get into: another PID namespace, a main thread that has ended, privileges that have been dropped.
#pragma once

#include <dat/udat.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/peer_process.h"
#include "support/wire.h"

namespace anydat::test {

// Bytes of its memory, of its messages and of a whole Write or Read.
inline constexpr std::size_t kNeighbourBytes = std::size_t{1} << 20;

class Neighbour {
 public:
  // Circumstances: any of "pid-namespace" (it lives in one of its own), "main-thread-ends" (its first thread
  // does, when it is told so), "fixed-addresses" (a program that it executes has its memory at the same place).
  // Or an address, 10.x.y.z, as the first: it has that one, in a network namespace and a PID namespace of its own.
  // With one of the two, "user-N": its user's number is N there.
  explicit Neighbour(const Wire& wire, std::vector<std::string> circumstances = {});

  // Connects it to the other one. Each offers its memory, and aims at the other's.
  void connect_to(Neighbour& other, const std::string& address = "127.0.0.1");
  void connect_to(Neighbour& other, const std::string& address, const std::string& qualifier);  // that it listens at

  void send(int seed);     // and waits until it has been sent
  void receive(int seed);  // throws unless it is that message
  void write(int seed);    // the whole of the other's memory
  void read(int seed);     // of the other's memory; throws unless that pattern is there
  bool holds(int seed);    // its own memory, as Writes have left it

  void write_endlessly(std::size_t bytes);  // begins, and returns when the first has completed
  std::string end_of_writing();             // the status of the first that failed, as a number
  // Waits until a peer writes into its memory, ends its registration, and fills it.
  void free_and_fill();
  std::size_t touched();  // how many bytes of it are no longer as it has filled them

  void hide();                     // gives up to be looked into by others of its user (PR_SET_DUMPABLE)
  void leave_a_child();            // that shares nothing but its descriptors, and lives until it is told to end
  void execute();                  // another program in its place, whose memory is zero
  std::string connection_event();  // the next one's name, or "nothing"

  void stop();  // by SIGSTOP
  void resume();
  void kill() { process_.kill(); }
  void kill_all();  // with what it has become in namespaces, of which nothing is left then
  pid_t pid() const { return process_.pid(); }

  std::string tell(const std::string& command);

 private:
  void post(const std::string& command);
  std::string answer();

  PeerProcess process_;
  std::string command_;
};

}  // namespace anydat::test
