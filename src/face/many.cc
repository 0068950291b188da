// SPDX-License-Identifier: BSD-3-Clause
// The exported calls of <anydat/anydat.h> that stand for many of the data path's. Each does what so many of the single
// calls (hot_calls.h) would, and looks the handle up once; objects post in rows what needs no closer look.
#include "face/calls.h"
// Needs the types of the version.
#include <anydat/anydat.h>

#include <span>

namespace anydat::face {

namespace {

// Programs in C and in C++, and those of both versions, have the same.
static_assert(sizeof(ANYDAT_SRQ_POST) == 24 && offsetof(ANYDAT_SRQ_POST, local_iov) == 8 &&
              offsetof(ANYDAT_SRQ_POST, user_cookie) == 16);
static_assert(sizeof(ANYDAT_EP_POST) == 32 && offsetof(ANYDAT_EP_POST, local_iov) == 8 &&
              offsetof(ANYDAT_EP_POST, user_cookie) == 16 && offsetof(ANYDAT_EP_POST, completion_flags) == 24);

bool add(dapl::Srq::Row& row, const ANYDAT_SRQ_POST& post) {
  return row.add(from_triplet(*post.local_iov), post.user_cookie.as_64);
}
template <typename Row>
bool add(Row& row, const ANYDAT_EP_POST& post) {
  return row.add(from_triplet(*post.local_iov), post.user_cookie.as_64, post.completion_flags);
}

// Posts one after the other, until one is refused. single(post): the call for one, which all that is unusual goes to,
// so that it is refused as it would be there.
template <typename Row, typename Post, typename Single>
dapl::Error post_all(Row row, std::span<const Post> posts, DAT_COUNT& posted, Single single) {
  for (const Post& post : posts) {
    if (row.full()) {
      if (const dapl::Error error = row.post(posted)) return error;
    }
    if (post.num_segments == 1 && post.local_iov && add(row, post)) [[likely]]
      continue;
    if (const dapl::Error error = row.post(posted)) return error;
    if (const dapl::Error error = single(post)) return error;
    ++posted;
  }
  return row.post(posted);
}

// What only these calls can get wrong, in the order of their parameters.
dapl::Error check(const char* call, DAT_COUNT count, DAT_COUNT least, const void* array, const void* done) {
  if (count < least) return dapl::fail(at(2), "{}: the number is {}", call, count);
  if (!array && count > 0) return dapl::fail(at(3), "{}: the array is NULL", call);
  if (!done) return dapl::fail(at(4), "{}: the place for how many is NULL", call);
  return dapl::kSuccess;
}

template <typename Post>
std::span<const Post> all_of(const Post* posts, DAT_COUNT count) {
  return {posts, static_cast<std::size_t>(count)};
}

struct evd_dequeue_many_call : evd_dequeue_call {
  static dapl::Error ours(DAT_EVD_HANDLE evd_handle, DAT_COUNT max, DAT_EVENT* events, DAT_COUNT* count) {
    const char* call = "anydat_evd_dequeue_many";
    if (count) *count = 0;
    ANYDAT_OBJECT(Evd, evd, evd_handle, call, none);
    if (const dapl::Error error = check(call, max, 1, events, count)) [[unlikely]]
      return error;
    std::size_t taken = 0;
    const dapl::Error error = evd->dequeue_many(static_cast<std::size_t>(max), taken, [&](const dapl::Event& event) {
      fill_event(event, evd_handle, *events++);
    });
    *count = static_cast<DAT_COUNT>(taken);
    return error;
  }
};

struct srq_post_recvs_call : srq_post_recv_call {
  static dapl::Error ours(DAT_SRQ_HANDLE srq_handle, DAT_COUNT count, const ANYDAT_SRQ_POST* receives,
                          DAT_COUNT* posted) {
    const char* call = "anydat_srq_post_recvs";
    if (posted) *posted = 0;
    ANYDAT_OBJECT(Srq, srq, srq_handle, call, handle_srq);
    if (const dapl::Error error = check(call, count, 0, receives, posted)) [[unlikely]]
      return error;
    return post_all(dapl::Srq::Row(*srq), all_of(receives, count), *posted, [=](const ANYDAT_SRQ_POST& one) {
      return srq_post_recv(srq_handle, one.num_segments, one.local_iov, one.user_cookie);
    });
  }
};

struct ep_post_sends_call : ep_post_send_call {
  static dapl::Error ours(DAT_EP_HANDLE ep_handle, DAT_COUNT count, const ANYDAT_EP_POST* sends, DAT_COUNT* posted) {
    const char* call = "anydat_ep_post_sends";
    if (posted) *posted = 0;
    ANYDAT_OBJECT(Ep, ep, ep_handle, call, handle_ep);
    if (const dapl::Error error = check(call, count, 0, sends, posted)) [[unlikely]]
      return error;
    return post_all(dapl::EpPosts::SendRow(ep->posts()), all_of(sends, count), *posted, [=](const ANYDAT_EP_POST& one) {
      return ep_post_send(ep_handle, one.num_segments, one.local_iov, one.user_cookie, one.completion_flags);
    });
  }
};

struct ep_post_recvs_call : ep_post_recv_call {
  static dapl::Error ours(DAT_EP_HANDLE ep_handle, DAT_COUNT count, const ANYDAT_EP_POST* receives, DAT_COUNT* posted) {
    const char* call = "anydat_ep_post_recvs";
    if (posted) *posted = 0;
    ANYDAT_OBJECT(Ep, ep, ep_handle, call, handle_ep);
    if (const dapl::Error error = check(call, count, 0, receives, posted)) [[unlikely]]
      return error;
    return post_all(
        dapl::EpPosts::RecvRow(ep->posts()), all_of(receives, count), *posted, [=](const ANYDAT_EP_POST& one) {
          return ep_post_recv(ep_handle, one.num_segments, one.local_iov, one.user_cookie, one.completion_flags);
        });
  }
};

}  // namespace

}  // namespace anydat::face

extern "C" {

__attribute__((visibility("default"))) DAT_RETURN anydat_evd_dequeue_many(DAT_EVD_HANDLE evd, DAT_COUNT max,
                                                                          DAT_EVENT* events, DAT_COUNT* count) {
  return anydat::face::Edge<anydat::face::evd_dequeue_many_call>::call(evd, max, events, count);
}

__attribute__((visibility("default"))) DAT_RETURN anydat_srq_post_recvs(DAT_SRQ_HANDLE srq, DAT_COUNT count,
                                                                        const ANYDAT_SRQ_POST* receives,
                                                                        DAT_COUNT* posted) {
  return anydat::face::Edge<anydat::face::srq_post_recvs_call>::call(srq, count, receives, posted);
}

__attribute__((visibility("default"))) DAT_RETURN anydat_ep_post_sends(DAT_EP_HANDLE ep, DAT_COUNT count,
                                                                       const ANYDAT_EP_POST* sends, DAT_COUNT* posted) {
  return anydat::face::Edge<anydat::face::ep_post_sends_call>::call(ep, count, sends, posted);
}

__attribute__((visibility("default"))) DAT_RETURN anydat_ep_post_recvs(DAT_EP_HANDLE ep, DAT_COUNT count,
                                                                       const ANYDAT_EP_POST* receives,
                                                                       DAT_COUNT* posted) {
  return anydat::face::Edge<anydat::face::ep_post_recvs_call>::call(ep, count, receives, posted);
}

}  // extern "C"
