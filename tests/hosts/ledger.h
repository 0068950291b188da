// SPDX-License-Identifier: BSD-3-Clause
// The books of a test: every DTO that was posted completes once, with or without success.
#pragma once

#include <dat/udat.h>

#include <cstdint>
#include <set>
#include <string>

namespace anydat::test {

class Ledger {
 public:
  // The cookie for the next DTO.
  DAT_DTO_COOKIE post() {
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = next_;
    open_.insert(next_++);
    return cookie;
  }
  // The DTO of that cookie was refused after all.
  void take_back(DAT_DTO_COOKIE cookie) { open_.erase(cookie.as_64); }
  // Fails the test if that DTO is not open.
  void complete(const DAT_DTO_COMPLETION_EVENT_DATA& completion);

  std::size_t open() const { return open_.size(); }
  std::uint64_t successes() const { return successes_; }

 private:
  std::uint64_t next_ = 1;
  std::set<std::uint64_t> open_;
  std::uint64_t successes_ = 0;
};

// And every connection ends once: what has been told of one end of it.
class EndOfConnection {
 public:
  // Fails the test if nothing may follow what came before.
  void tell(DAT_EVENT_NUMBER number);

  bool established() const { return established_; }
  bool over() const { return over_; }
  const std::string& story() const { return story_; }

 private:
  bool established_ = false;
  bool over_ = false;
  std::string story_;  // the names of the events
};

}  // namespace anydat::test
