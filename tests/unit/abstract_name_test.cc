// SPDX-License-Identifier: BSD-3-Clause
// Names of local sockets that are in no file system: none is cut, so two that differ in their last byte are two.
#include "os/local_socket.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/unique_fd.h"

namespace anydat::os {
namespace {

TEST(AbstractName, HasRoomForAsMuchAsAnAddress) {
  std::string name = fmt::format("anydat/test/{}/", ::getpid());
  name.resize(107, 'x');
  const os::UniqueFd socket = local_socket();
  ASSERT_EQ(AbstractName(name).bind(socket.get()), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_EQ(AbstractName(name).connect(local_socket().get()), 0);
  std::string other = name;
  other.back() = 'y';
  EXPECT_EQ(AbstractName(other).connect(local_socket().get()), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(AbstractName(other).bind(local_socket().get()), 0);
}

TEST(AbstractName, IsRefusedRatherThanCut) {
  const std::string name(108, 'x');
  EXPECT_EQ(AbstractName(name).bind(local_socket().get()), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
  EXPECT_EQ(AbstractName(name).connect(local_socket().get()), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
}

}  // namespace
}  // namespace anydat::os
