// SPDX-License-Identifier: BSD-3-Clause
// The echoing half: sends every message back from the very buffer it arrived in.
//
// One event dispatcher carries requests, connections, completions and the wish to stop, so the server is one loop.
// A buffer is in one place at a time: posted for receiving, or being sent back.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "common/error.h"
#include "common/process.h"
#include "datping/ping.h"

namespace datping {
namespace {

constexpr DAT_COUNT kSharedBuffers = 32;
constexpr DAT_COUNT kOwnBuffers = 4;  // for each connection without an SRQ
constexpr DAT_COUNT kQueueLength = 4096;

struct Buffer {
  DAT_LMR_TRIPLET whole{};
  bool sending = false;  // the next completion that carries this buffer is that of its echo
};

// Memory for `count` messages of `bytes`, as buffers that keep their address.
struct BufferPool {
  BufferPool(const tools::Adapter& adapter, DAT_COUNT count, std::uint64_t bytes)
      : region(adapter, static_cast<std::size_t>(count) * bytes) {
    for (DAT_COUNT i = 0; i < count; ++i) buffers.push_back({region.at(static_cast<std::size_t>(i) * bytes, bytes)});
  }
  tools::Region region;
  std::deque<Buffer> buffers;
};

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options),
        adapter_(options.ia),
        evd_(adapter_.make_evd(kQueueLength,
                               DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG)) {
    if (options.srq) {
      shared_buffers_.emplace(adapter_, kSharedBuffers, buffer_bytes(options.size));
      srq_ = adapter_.make_srq(kSharedBuffers);
      for (auto& buffer : shared_buffers_->buffers) post_receive(DAT_HANDLE_NULL, buffer);
    }
    listener_.emplace(adapter_, evd_.get(), options.qualifier);
    stop_.emplace(evd_.get(), options.control_fd);
  }

  int run() {
    if (options_.control_fd >= 0) {
      tools::announce(options_.control_fd, listener_->qualifier());
    } else {
      fmt::print("datping: serving on {}:{} ({}), messages of up to {} bytes; stop with Ctrl-C\n",
                 tools::address_text(adapter_.attributes().ia_address_ptr), listener_->qualifier(), options_.ia,
                 options_.size);
      std::fflush(stdout);
    }
    for (;;) {
      DAT_EVENT event{};
      if (!tools::wait_event(evd_.get(), std::chrono::hours(1), event)) continue;
      switch (event.event_number) {
        case DAT_SOFTWARE_EVENT:
          return tools::kExitOk;
        case DAT_CONNECTION_REQUEST_EVENT:
          answer(event.event_data.cr_arrival_event_data.cr_handle);
          break;
        case DAT_DTO_COMPLETION_EVENT:
          complete(event.event_data.dto_completion_event_data);
          break;
        case DAT_CONNECTION_EVENT_ESTABLISHED:
          break;
        default:
          // However a connection ends, the completions of what it had then have come before (EP-DISC-11, STAT-16).
          connections_.erase(event.event_data.connect_event_data.ep_handle);
      }
    }
  }

 private:
  struct Connection {
    std::optional<BufferPool> own_buffers;  // freed after the endpoint that receives into it
    tools::Ep ep;
  };

  static std::uint64_t buffer_bytes(std::uint64_t message_bytes) { return message_bytes == 0 ? 1 : message_bytes; }

  void answer(DAT_CR_HANDLE cr) {
    // What cannot be had for one client, or a client that has gone, is no reason to leave the others.
    try {
      Request request;
      const tools::Bytes data = tools::request_data(cr);
      if (data.size() == sizeof request) std::memcpy(&request, data.data(), sizeof request);
      if (data.size() == sizeof request && request.magic == Request::kMagic && request.size <= options_.size) {
        accept(cr, request);
      } else {
        dat_cr_reject(cr);
      }
    } catch (const std::exception& error) {
      fmt::print(stderr, "datping: a client could not be served: {}\n", error.what());
      dat_cr_reject(cr);  // which fails if it has been accepted
    }
  }

  void accept(DAT_CR_HANDLE cr, const Request& request) {
    auto connection = std::make_unique<Connection>();
    if (options_.srq) {
      connection->ep = adapter_.make_ep_with_srq(evd_.get(), evd_.get(), evd_.get(), srq_.get(), kSharedBuffers);
    } else {
      connection->own_buffers.emplace(adapter_, kOwnBuffers, buffer_bytes(request.size));
      connection->ep = adapter_.make_ep(evd_.get(), evd_.get(), evd_.get(), kOwnBuffers, kOwnBuffers);
      for (auto& buffer : connection->own_buffers->buffers) post_receive(connection->ep.get(), buffer);
    }
    const DAT_EP_HANDLE ep = connection->ep.get();
    tools::check(dat_cr_accept(cr, ep, 0, nullptr), "dat_cr_accept");
    connections_.emplace(ep, std::move(connection));
  }

  void complete(const DAT_DTO_COMPLETION_EVENT_DATA& completion) {
    // A receive that was posted when the end had come, but not been read yet, is flushed behind it: its buffer is gone.
    if (!options_.srq && !connections_.contains(completion.ep_handle)) return;
    auto& buffer = *static_cast<Buffer*>(completion.user_cookie.as_ptr);
    const bool was_sending = std::exchange(buffer.sending, false);
    if (!was_sending && completion.status == DAT_DTO_SUCCESS) {
      DAT_LMR_TRIPLET message = buffer.whole;
      message.segment_length = completion.transfered_length;
      const DAT_RETURN status =
          dat_ep_post_send(completion.ep_handle, 1, &message, completion.user_cookie, DAT_COMPLETION_DEFAULT_FLAG);
      buffer.sending = status == DAT_SUCCESS;
      if (buffer.sending) return;
    }
    // Echoed, or its connection is ending: a shared buffer goes back to the queue, an own one only while that matters.
    if (options_.srq || (was_sending && completion.status == DAT_DTO_SUCCESS))
      post_receive(completion.ep_handle, buffer);
  }

  void post_receive(DAT_EP_HANDLE ep, Buffer& buffer) {
    DAT_DTO_COOKIE cookie{};
    cookie.as_ptr = &buffer;
    if (options_.srq) {
      tools::check(dat_srq_post_recv(srq_.get(), 1, &buffer.whole, cookie), "dat_srq_post_recv");
    } else {
      tools::check(dat_ep_post_recv(ep, 1, &buffer.whole, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
  }

  const Options& options_;
  tools::Adapter adapter_;
  tools::Evd evd_;
  std::optional<BufferPool> shared_buffers_;
  tools::Srq srq_;
  std::map<DAT_EP_HANDLE, std::unique_ptr<Connection>> connections_;
  std::optional<tools::Listener> listener_;
  std::optional<tools::StopWatcher> stop_;
};

}  // namespace

int serve(const Options& options) {
  tools::StopWatcher::block_signals();
  return Server(options).run();
}

}  // namespace datping
