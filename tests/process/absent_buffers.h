// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <span>

#include "absent_memory.h"
#include "payload.h"
#include "support/dat_fixture.h"

namespace anydat::test {

// Messages that come into memory of one adapter of this process.
class AbsentBuffers : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  void SetUp() override {
    if (!AbsentMemory::possible()) GTEST_SKIP() << "this system makes no memory absent for the kernel (userfaultfd)";
    void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ::madvise(pages, kBytes, MADV_NOHUGEPAGE);
    memory_ = {static_cast<std::byte*>(pages), kBytes};
    side_.emplace(GetParam());
    other_side_.emplace(GetParam());
    here_.emplace(side_->ia, side_->pz, memory_);
    there_.emplace(other_side_->ia, other_side_->pz, kBytes);
    fill_message(there_->bytes(), 1, 1);
    good_.emplace(connect_pair(*side_, *other_side_));
  }
  void TearDown() override {
    good_.reset();
    here_.reset();
    there_.reset();
    side_.reset();
    other_side_.reset();
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  }

  void post(const Connection& connection, DAT_LMR_TRIPLET buffer, std::size_t bytes) {
    DAT_LMR_TRIPLET source = there_->triplet(0, bytes);
    require(dat_ep_post_recv(connection.server.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(connection.client.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  // The first whole page of the other side's memory.
  std::span<std::byte> page_there() {
    const auto begin = reinterpret_cast<std::uintptr_t>(there_->bytes().data());
    return there_->bytes().subspan((begin + kPage - 1) / kPage * kPage - begin).first(kPage);
  }
  // Of that.
  void post_read(std::uint64_t cookie) {
    DAT_LMR_TRIPLET sink = here_->triplet(0, kPage);
    const auto offset = static_cast<std::size_t>(page_there().data() - there_->bytes().data());
    const DAT_RMR_TRIPLET source = there_->remote(offset, kPage);
    DAT_DTO_COOKIE number;
    number.as_64 = cookie;
    require(dat_ep_post_rdma_read(good_->server.get(), 1, &sink, number, &source, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
  }
  void expect_arrival(std::size_t offset, std::size_t bytes) {
    expect_completion(side_->recv.get());
    expect_completion(other_side_->request.get());
    EXPECT_TRUE(std::ranges::equal(memory_.subspan(offset, bytes), there_->bytes().first(bytes)));
  }

  std::span<std::byte> memory_;
  std::optional<Side> side_;
  std::optional<Side> other_side_;
  std::optional<Lmr> here_;
  std::optional<Lmr> there_;
  std::optional<Connection> good_;
};

// With a connection for what waits, beside the good one.
class AbsentBuffersOfAnother : public AbsentBuffers {
 protected:
  void SetUp() override {
    AbsentBuffers::SetUp();
    if (!IsSkipped()) connection_.emplace(connect_pair(*side_, *other_side_));
  }
  void TearDown() override {
    connection_.reset();
    AbsentBuffers::TearDown();
  }

  std::optional<Connection> connection_;
};

}  // namespace anydat::test
