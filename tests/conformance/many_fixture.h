// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the calls for many at once have in common (<anydat/anydat.h>).
#pragma once

// The types of the version come first.
#include <dat/udat.h>
//
#include <anydat/anydat.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "support/dat_matchers.h"
#include "support/versions.h"

namespace anydat::test {

// What a call for many came to.
struct Outcome {
  DAT_RETURN rc;
  DAT_COUNT done;
  bool operator==(const Outcome&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << describe(outcome.rc) << " after " << outcome.done;
}

// The arguments of posts, one after the other, whose cookies are their places from `first_cookie` on.
class Posts {
 public:
  explicit Posts(DAT_UINT64 first_cookie = 0) : next_(first_cookie) {}

  Posts& add(std::vector<DAT_LMR_TRIPLET> segments, int flags = DAT_COMPLETION_DEFAULT_FLAG) {
    const auto count = static_cast<DAT_COUNT>(segments.size());
    return add_raw(count, vectors_.emplace_back(std::move(segments)).data(), flags);
  }
  Posts& add_raw(DAT_COUNT count, DAT_LMR_TRIPLET* iov, int flags = DAT_COMPLETION_DEFAULT_FLAG) {
    ANYDAT_EP_POST post{};
    post.num_segments = count;
    post.local_iov = iov;
    post.user_cookie.as_64 = next_++;
    post.completion_flags = static_cast<DAT_COMPLETION_FLAGS>(flags);
    all_.push_back(post);
    return *this;
  }

  DAT_COUNT size() const { return static_cast<DAT_COUNT>(all_.size()); }
  const std::vector<ANYDAT_EP_POST>& all() const { return all_; }
  std::vector<ANYDAT_SRQ_POST> for_srq() const {
    std::vector<ANYDAT_SRQ_POST> result;
    for (const ANYDAT_EP_POST& post : all_) result.push_back({post.num_segments, post.local_iov, post.user_cookie});
    return result;
  }

 private:
  DAT_UINT64 next_;
  std::deque<std::vector<DAT_LMR_TRIPLET>> vectors_;
  std::vector<ANYDAT_EP_POST> all_;
};

using PostMany = std::function<Outcome(DAT_HANDLE, const Posts&)>;

// One by one, until one is refused: what the calls for many are to be like.
inline Outcome one_by_one(const Posts& posts, const std::function<DAT_RETURN(const ANYDAT_EP_POST&)>& call) {
  Outcome outcome{DAT_SUCCESS, 0};
  for (const ANYDAT_EP_POST& post : posts.all()) {
    outcome.rc = call(post);
    if (outcome.rc != DAT_SUCCESS) break;
    ++outcome.done;
  }
  return outcome;
}

inline Outcome send_singly(DAT_EP_HANDLE ep, const Posts& posts) {
  return one_by_one(posts, [ep](const ANYDAT_EP_POST& post) {
    return dat_ep_post_send(ep, post.num_segments, post.local_iov, post.user_cookie, post.completion_flags);
  });
}
inline Outcome send_many(DAT_EP_HANDLE ep, const Posts& posts) {
  Outcome outcome{0, -1};
  outcome.rc = anydat_ep_post_sends(ep, posts.size(), posts.all().data(), &outcome.done);
  return outcome;
}
inline Outcome receive_singly(DAT_EP_HANDLE ep, const Posts& posts) {
  return one_by_one(posts, [ep](const ANYDAT_EP_POST& post) {
    return dat_ep_post_recv(ep, post.num_segments, post.local_iov, post.user_cookie, post.completion_flags);
  });
}
inline Outcome receive_many(DAT_EP_HANDLE ep, const Posts& posts) {
  Outcome outcome{0, -1};
  outcome.rc = anydat_ep_post_recvs(ep, posts.size(), posts.all().data(), &outcome.done);
  return outcome;
}
inline Outcome supply_singly(DAT_SRQ_HANDLE srq, const Posts& posts) {
  return one_by_one(posts, [srq](const ANYDAT_EP_POST& post) {
    return dat_srq_post_recv(srq, post.num_segments, post.local_iov, post.user_cookie);
  });
}
inline Outcome supply_many(DAT_SRQ_HANDLE srq, const Posts& posts) {
  Outcome outcome{0, -1};
  outcome.rc = anydat_srq_post_recvs(srq, posts.size(), posts.for_srq().data(), &outcome.done);
  return outcome;
}

// Up to `most` events by one call.
struct Taken {
  DAT_RETURN rc;
  std::vector<DAT_EVENT> events;
};
inline Taken take_many(DAT_EVD_HANDLE evd, DAT_COUNT most) {
  Taken taken{0, std::vector<DAT_EVENT>(static_cast<std::size_t>(most))};
  DAT_COUNT count = -1;
  taken.rc = anydat_evd_dequeue_many(evd, most, taken.events.data(), &count);
  taken.events.resize(static_cast<std::size_t>(count));
  return taken;
}

// Something that one post can have, put between good ones.
struct OddPost {
  std::string name;
  std::function<void(Posts&)> add;
};

}  // namespace anydat::test
