// SPDX-License-Identifier: BSD-3-Clause
// datping: is the other side there, does every byte come back, and how long does it take?
#include "common/command_line.h"
#include "common/error.h"
#include "common/process.h"
#include "datping/ping.h"

namespace datping {
namespace {

int run(const Options& options) {
  if (options.serve) return serve(options);
  if (!options.to.empty()) return ping(options, tools::resolve_peer(options.to, kDefaultQualifier));

  std::vector<std::string> arguments{"datping", "--serve", "--qual", "0", "--ia", options.ia};
  arguments.insert(arguments.end(), {"--size", std::to_string(options.size)});
  if (options.srq) arguments.emplace_back("--srq");
  tools::ServerProcess server(std::move(arguments));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  const int code = ping(options, peer_on_this_host(options.ia, qualifier));
  const int server_code = server.stop();
  return code != tools::kExitOk ? code : server_code;
}

}  // namespace
}  // namespace datping

int main(int argc, char** argv) {
  datping::Options options;
  CLI::App app(
      "Sends messages to a server that echoes them, and compares every byte that comes back. Starts its own server on "
      "this host unless told where one is. Exit code 0 only if every message came back intact.",
      "datping");
  auto* serve = app.add_flag("--serve", options.serve, "Be the server, until interrupted");
  app.add_option("--qual", options.qualifier, "Qualifier to serve on, a port or a larger number; 0 takes a free one")
      ->capture_default_str()
      ->needs(serve);
  app.add_option("--to", options.to, "Ping the server at HOST[:QUAL]")->excludes(serve);
  app.add_option("--count", options.count, "Number of messages")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  auto* size = app.add_option("--size", options.size,
                              "Bytes in a message, as in 64 or 64KiB; for a server the most it takes (default 1MiB)")
                   ->transform(CLI::AsSizeValue(false))
                   ->check(CLI::Range(0, 1 << 30));
  app.add_option("--ia", options.ia, "Interface adapter")->capture_default_str();
  app.add_flag("--srq", options.srq, "Receive through a shared receive queue");
  app.add_option("--timeout", options.timeout_s, "Seconds to wait for a connection or an echo")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_option("--interval", options.interval_s, "Seconds to pause between messages")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--control-fd", options.control_fd)->group("");
  app.footer(tools::examples(
      {"datping --count 1000 --size 4KiB --srq", "datping --serve --srq", "datping --to server.example.org"}));
  return tools::run_tool(app, argc, argv, [&] {
    if (options.serve && size->count() == 0) options.size = 1 << 20;
    return datping::run(options);
  });
}
