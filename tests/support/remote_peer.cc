// SPDX-License-Identifier: BSD-3-Clause
#include "support/remote_peer.h"

#include <fmt/format.h>
#include <signal.h>

#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace anydat::test {
namespace {

// The other process: carries out one command a line and answers each with one line.
class Player {
 public:
  explicit Player(const Wire& wire) : side_(std::make_unique<Side>(wire)), ep_(*side_) {}

  std::string obey(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    const auto number = [&words] {
      long long value = 0;
      words >> value;
      return value;
    };
    if (verb == "connect") {
      const auto qualifier = static_cast<DAT_CONN_QUAL>(number());
      require(dat_ep_connect(ep_.get(), loopback(), qualifier, static_cast<DAT_TIMEOUT>(number()), 0, nullptr,
                             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
              "dat_ep_connect");
    } else if (verb == "listen") {
      return std::to_string(side_->listen());
    } else if (verb == "accept") {
      const DAT_EVENT request = expect_event(side_->requests.get(), DAT_CONNECTION_REQUEST_EVENT);
      require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep_.get(), 0, nullptr),
              "dat_cr_accept");
    } else if (verb == "receives" || verb == "sends") {
      const auto count = number();
      post(verb == "sends", static_cast<int>(count), static_cast<std::size_t>(number()));
    } else if (verb == "disconnect") {
      require(dat_ep_disconnect(ep_.get(), static_cast<DAT_CLOSE_FLAGS>(number())), "dat_ep_disconnect");
    } else if (verb == "free") {
      ep_.reset();
    } else if (verb == "close") {
      close(static_cast<DAT_CLOSE_FLAGS>(number()));
    } else if (verb == "event") {
      const auto event = wait_event(side_->connect.get());
      return event ? std::to_string(event->event_number) : "none";
    } else if (verb == "request-completion") {
      return next_status(side_->request.get());
    } else if (verb == "receive-completion") {
      return next_status(side_->recv.get());
    } else if (verb == "stop") {
      ::raise(SIGSTOP);
    } else {
      throw std::runtime_error("unknown command: " + line);
    }
    return "done";
  }

 private:
  static std::string next_status(DAT_EVD_HANDLE evd) {
    const DAT_EVENT event = expect_event(evd, DAT_DTO_COMPLETION_EVENT);
    return std::to_string(event.event_data.dto_completion_event_data.status);
  }

  void post(bool sends, int count, std::size_t bytes) {
    memory_.emplace_back(side_->ia, side_->pz, bytes);
    DAT_LMR_TRIPLET segment = memory_.back().triplet();
    for (int i = 0; i < count; ++i) {
      DAT_DTO_COOKIE cookie{};
      cookie.as_64 = static_cast<DAT_UINT64>(i);
      require(sends ? dat_ep_post_send(ep_.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG)
                    : dat_ep_post_recv(ep_.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG),
              sends ? "dat_ep_post_send" : "dat_ep_post_recv");
    }
  }

  // The owners of what goes with the adapter must not free it again.
  void close(DAT_CLOSE_FLAGS flags) {
    require(side_->ia.close(flags), "dat_ia_close");
    ep_.release();
    for (Lmr& lmr : memory_) {
      lmr.release();
    }
    side_->pz.release();
    for (Evd* evd : {&side_->recv, &side_->request, &side_->connect, &side_->requests}) {
      evd->release();
    }
    if (side_->psp) {
      side_->psp->release();
    }
  }

  std::unique_ptr<Side> side_;
  std::vector<Lmr> memory_;
  Ep ep_;
};

void play(RoleContext& context) {
  Player player(context.wire);
  for (std::string line = context.parent.hear(); line != "end"; line = context.parent.hear()) {
    context.parent.say(player.obey(line));
  }
}

const Role kRole("remote_peer", play);

}  // namespace

RemotePeer::RemotePeer(const Wire& wire) : process_("remote_peer", wire) {}

std::string RemotePeer::tell(const std::string& command) {
  process_.channel().say(command);
  return process_.channel().hear();
}

void RemotePeer::connect(DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout) {
  tell(fmt::format("connect {} {}", qualifier, timeout));
}

DAT_CONN_QUAL RemotePeer::listen() {
  return std::stoull(tell("listen"));
}

void RemotePeer::accept() {
  tell("accept");
}

void RemotePeer::post_receives(int count, std::size_t bytes) {
  tell(fmt::format("receives {} {}", count, bytes));
}

void RemotePeer::post_sends(int count, std::size_t bytes) {
  tell(fmt::format("sends {} {}", count, bytes));
}

void RemotePeer::disconnect(DAT_CLOSE_FLAGS flags) {
  tell(fmt::format("disconnect {}", static_cast<int>(flags)));
}

void RemotePeer::free_endpoint() {
  tell("free");
}

void RemotePeer::close_adapter(DAT_CLOSE_FLAGS flags) {
  tell(fmt::format("close {}", static_cast<int>(flags)));
}

DAT_EVENT_NUMBER RemotePeer::next_event() {
  return static_cast<DAT_EVENT_NUMBER>(std::stoi(tell("event")));
}

DAT_DTO_COMPLETION_STATUS RemotePeer::next_request_completion() {
  return static_cast<DAT_DTO_COMPLETION_STATUS>(std::stoi(tell("request-completion")));
}

DAT_DTO_COMPLETION_STATUS RemotePeer::next_receive_completion() {
  return static_cast<DAT_DTO_COMPLETION_STATUS>(std::stoi(tell("receive-completion")));
}

void RemotePeer::stop() {
  process_.channel().say("stop");
  process_.wait_until_stopped();
}

void RemotePeer::resume() {
  process_.resume();
  process_.channel().hear();  // the answer to "stop"
}

}  // namespace anydat::test
