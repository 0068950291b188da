// SPDX-License-Identifier: BSD-3-Clause
// The side of the test; neighbour_program.cc is the other one.
#include "neighbour.h"

#include <fmt/format.h>
#include <signal.h>

#include <exception>
#include <stdexcept>

namespace anydat::test {

Neighbour::Neighbour(const Wire& wire, std::vector<std::string> circumstances)
    : process_("neighbour", wire, circumstances) {
  command_ = "begin";
  answer();
}

void Neighbour::post(const std::string& command) {
  command_ = command;
  process_.channel().say(command);
}

std::string Neighbour::answer() {
  const std::string answer = process_.channel().hear(4 * patience());
  if (answer == "ok") return {};
  if (!answer.starts_with("ok ")) {
    throw std::runtime_error(fmt::format("told to {}, the neighbour answered: {}", command_, answer));
  }
  return answer.substr(3);
}

std::string Neighbour::tell(const std::string& command) {
  post(command);
  return answer();
}

void Neighbour::connect_to(Neighbour& other, const std::string& address) {
  connect_to(other, address, other.tell("listen"));
}

void Neighbour::connect_to(Neighbour& other, const std::string& address, const std::string& qualifier) {
  tell(fmt::format("connect {} {}", qualifier, address));
  other.tell("accept");
  const std::string ours = tell("offer");
  const std::string theirs = other.tell("offer");
  tell("aim " + theirs);
  other.tell("aim " + ours);
}

void Neighbour::send(int seed) {
  tell(fmt::format("send {}", seed));
}
void Neighbour::receive(int seed) {
  tell(fmt::format("receive {}", seed));
}
void Neighbour::write(int seed) {
  tell(fmt::format("write {}", seed));
}
void Neighbour::read(int seed) {
  tell(fmt::format("read {}", seed));
}
bool Neighbour::holds(int seed) {
  return tell(fmt::format("holds {}", seed)) == "yes";
}
void Neighbour::write_endlessly(std::size_t bytes) {
  tell(fmt::format("write-endlessly {}", bytes));
}
std::string Neighbour::end_of_writing() {
  return answer();
}
void Neighbour::free_and_fill() {
  tell("free-and-fill");
}
std::size_t Neighbour::touched() {
  return std::stoul(tell("touched"));
}
void Neighbour::hide() {
  tell("hide");
}
void Neighbour::leave_a_child() {
  tell("leave-a-child");
}
void Neighbour::execute() {
  tell("execute");
}
std::string Neighbour::connection_event() {
  return tell("connection-event");
}

void Neighbour::stop() {
  ::kill(process_.pid(), SIGSTOP);
  process_.wait_until_stopped();
}

void Neighbour::kill_all() {
  process_.kill();
  try {
    process_.channel().hear();
  } catch (const std::exception&) {
    // All ends of the channel are closed.
  }
}

void Neighbour::resume() {
  process_.resume();
}

}  // namespace anydat::test
