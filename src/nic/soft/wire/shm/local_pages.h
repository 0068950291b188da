// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "nic/soft/own_pages.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// Memory of this process that a connection over shared memory copies from or to, and that may not be there: that of its
// requests, and that of what arrives, so that neither waits for a page of the other. What is blocked for want of a page
// goes on when it has been brought in, or fails. What the peer reads is with the ReadResponder.
//
// Thread safety: memory of requests is looked for with the queue pair's send lock or the engine; all else with the
// engine held. Lives and dies with its stream.
class LocalPages final : private OwnPages::User {
 public:
  explicit LocalPages(ShmStream& stream);
  LocalPages(const LocalPages&) = delete;
  LocalPages& operator=(const LocalPages&) = delete;

  OwnPages& of_requests() { return of_requests_; }
  OwnPages& of_arrivals() { return of_arrivals_; }
  void bring();  // as OwnPages
  void go_on();  // memory has been brought in, or has failed

 private:
  void wants_pages() override;
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;
  void fail_request(const OwnPages::Brought& news);
  void fail_arriving(std::uint64_t address);

  ShmStream& stream_;
  OwnPages of_requests_;
  OwnPages of_arrivals_;
};

}  // namespace anydat::nic::soft::shm
