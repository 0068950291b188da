// SPDX-License-Identifier: BSD-3-Clause
// CNOs with a descriptor (D2-CNO).
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

class Dat2Cno : public Dat2 {
 protected:
  Dat2Cno() { require(dat_cno_fd_create(server.ia.get(), &fd, &cno), "dat_cno_fd_create"); }
  void TearDown() override {
    if (cno != DAT_HANDLE_NULL) {
      EXPECT_THAT(dat_cno_free(cno), Succeeds());
    }
  }
  bool readable(int timeout_ms) const {
    pollfd one{fd, POLLIN, 0};
    const int ready = poll(&one, 1, timeout_ms);
    EXPECT_EQ(one.revents & ~POLLIN, 0);
    return ready == 1;
  }
  bool readable_now() const { return readable(0); }
  bool becomes_readable() const { return readable(static_cast<int>(patience().count())); }

  DAT_FD fd = -1;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Cno, testing::ValuesIn(all_wires()), wire_name);

// D2-CNO-2, D2-CNO-3, D2-CNO-7.
TEST_P(Dat2Cno, TheDescriptorIsReadableWhileATriggerIsLatched) {
  const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno);
  EXPECT_FALSE(readable_now());
  DAT_EVD_HANDLE which = cno;
  EXPECT_THAT(dat_cno_trigger(cno, &which), Succeeds());
  EXPECT_EQ(which, DAT_HANDLE_NULL);
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  for (int round = 0; round < 3; ++round) {
    require(dat_evd_post_se(evd.get(), &event), "post_se");
    EXPECT_TRUE(readable_now());
    EXPECT_TRUE(readable_now()) << "until it is taken";
    if (round == 2) {
      EXPECT_THAT(dat_cno_wait(cno, 0, &which), Succeeds());
    } else {
      EXPECT_THAT(dat_cno_trigger(cno, &which), Succeeds());
    }
    EXPECT_EQ(which, evd.get());
    EXPECT_FALSE(readable_now());
    EXPECT_EQ(drain(evd.get()), 1);
  }
}

// D2-CNO-6: epoll alone waits, and no thread is in a call.
TEST_P(Dat2Cno, EventsComeWithNobodyInACall) {
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG, 64, cno);
  const Ep server_ep(server.ia, server.pz, {recv.get(), server.request.get(), server.connect.get()}, default_ep_attr());
  const Ep client_ep(client);
  (void)connect_pair(server, server_ep.get(), client_ep.get());
  const Lmr to(server.ia, server.pz, 64);
  const Lmr from(client.ia, client.pz, 64);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  ASSERT_GE(epoll, 0);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted), 0);
  for (int round = 0; round < 100; ++round) {
    DAT_LMR_TRIPLET segment = to.triplet();
    require(dat_ep_post_recv(server_ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "recv");
    segment = from.triplet();
    require(dat_ep_post_send(client_ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "send");
    epoll_event happened{};
    ASSERT_EQ(epoll_wait(epoll, &happened, 1, static_cast<int>(patience().count())), 1) << round;
    DAT_EVD_HANDLE which = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_cno_trigger(cno, &which), Succeeds());
    EXPECT_EQ(which, recv.get());
    EXPECT_EQ(drain(recv.get()), 1) << round;
    (void)expect_completion(client.request.get());
  }
  close(epoll);
}

// D2-CNO-1, D2-CNO-9, D2-CNO-11, D2-CNO-12.
TEST_P(Dat2Cno, AQueryTellsTheKindOfProxy) {
  for (unsigned mask = 0; mask < 8; ++mask) {
    DAT_CNO_PARAM param{};
    ASSERT_THAT(dat_cno_query(cno, static_cast<DAT_CNO_PARAM_MASK>(mask), &param), Succeeds()) << mask;
    EXPECT_EQ(param.ia_handle, server.ia.get());
    EXPECT_EQ(param.proxy_type, DAT_PROXY_TYPE_FD);
    EXPECT_EQ(param.proxy.fd, fd);
  }
  EXPECT_THAT(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL), HasType(DAT_INVALID_STATE));
  DAT_CNO_PARAM param{};
  DAT_CNO_HANDLE plain = DAT_HANDLE_NULL;
  require(dat_cno_create(server.ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, &plain), "dat_cno_create");
  ASSERT_THAT(dat_cno_query(plain, DAT_CNO_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.proxy_type, DAT_PROXY_TYPE_NONE);
  EXPECT_EQ(param.proxy.none, nullptr);
  EXPECT_THAT(dat_cno_free(plain), Succeeds());
}

// D2-CNO-5: closed with the CNO.
TEST_P(Dat2Cno, TheDescriptorGoesWithTheCno) {
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_THAT(dat_cno_free(std::exchange(cno, DAT_HANDLE_NULL)), Succeeds());
  // Freed objects rest for a while; the descriptor does not.
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

// docs/process-life.md, closefrom: a program that closes the number and has a file of its own by it.
TEST_P(Dat2Cno, AFileOfTheProgramByItsNumberIsNotTouched) {
  const int file = memfd_create("the-program's", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(dup2(file, fd), fd);
  close(file);
  const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno);
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  require(dat_evd_post_se(evd.get(), &event), "post_se");
  EXPECT_EQ(lseek(fd, 0, SEEK_END), 0) << "something was written";
  const char text[] = "sixteen bytes...";
  ASSERT_EQ(pwrite(fd, text, sizeof text, 0), static_cast<ssize_t>(sizeof text));
  lseek(fd, 0, SEEK_SET);
  DAT_EVD_HANDLE which = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_cno_trigger(cno, &which), Succeeds());
  EXPECT_EQ(which, evd.get());
  EXPECT_EQ(lseek(fd, 0, SEEK_CUR), 0) << "something was read";
  close(fd);
}

// D2-CNO-8: what comes while the EVDs are emptied makes it readable again.
TEST_P(Dat2Cno, NoTriggerIsLostWhileEventsAreTaken) {
  const Evd one(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno);
  const Evd other(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno);
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  DAT_EVD_HANDLE which = DAT_HANDLE_NULL;
  require(dat_evd_post_se(one.get(), &event), "post_se");
  require(dat_evd_post_se(other.get(), &event), "post_se");
  ASSERT_THAT(dat_cno_trigger(cno, &which), Succeeds());
  EXPECT_EQ(which, other.get()) << "the latest";
  EXPECT_FALSE(readable_now()) << "two triggers are one";
  EXPECT_EQ(drain(one.get()), 1);
  require(dat_evd_post_se(one.get(), &event), "post_se");
  EXPECT_TRUE(readable_now());
  EXPECT_EQ(drain(other.get()), 1);
  ASSERT_THAT(dat_cno_trigger(cno, &which), Succeeds());
  EXPECT_EQ(which, one.get());
  EXPECT_EQ(drain(one.get()), 1);
  EXPECT_FALSE(readable_now());
}

// D2-CNO-4: a thread that waits in a call takes the trigger, and the descriptor does not show it.
TEST_P(Dat2Cno, AThreadThatWaitsTakesTheTrigger) {
  const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno);
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  for (int round = 0; round < 20; ++round) {
    DAT_EVD_HANDLE which = DAT_HANDLE_NULL;
    std::thread waiter([&] { EXPECT_THAT(dat_cno_wait(cno, long_timeout(), &which), Succeeds()); });
    require(dat_evd_post_se(evd.get(), &event), "post_se");
    waiter.join();
    EXPECT_EQ(which, evd.get());
    EXPECT_FALSE(readable_now());
    EXPECT_EQ(drain(evd.get()), 1);
  }
}

// D2-CNO-13.
TEST_P(Dat2Cno, TheLastEvdThatIsFreedWakesThoseWhoPoll) {
  DAT_EVD_HANDLE which = cno;
  for (int round = 0; round < 2; ++round) {
    Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno);
    EXPECT_FALSE(readable_now()) << round;
    EXPECT_THAT(evd.free(), Succeeds());
    EXPECT_TRUE(readable_now()) << round;
    EXPECT_THAT(dat_cno_trigger(cno, &which), Succeeds());
    EXPECT_EQ(which, DAT_HANDLE_NULL);
    EXPECT_FALSE(readable_now()) << "nothing is left to take";
  }
  Ia other(GetParam());
  DAT_FD others = -1;
  DAT_CNO_HANDLE gone = DAT_HANDLE_NULL;
  require(dat_cno_fd_create(other.get(), &others, &gone), "dat_cno_fd_create");
  ASSERT_NE(fcntl(others, F_GETFD), -1);
  ASSERT_THAT(other.close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_EQ(fcntl(others, F_GETFD), -1) << "the close of the adapter closes it";
  EXPECT_THAT(dat_cno_trigger(gone, &which), HasType(DAT_INVALID_HANDLE));
}

// D2-CNO-10.
TEST_P(Dat2Cno, BadArgumentsAreRefused) {
  DAT_FD other = -1;
  DAT_CNO_HANDLE made = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_cno_fd_create(DAT_HANDLE_NULL, &other, &made), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_cno_fd_create(cno, &other, &made), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_cno_fd_create(server.ia.get(), nullptr, &made), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_cno_fd_create(server.ia.get(), &other, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_cno_trigger(DAT_HANDLE_NULL, &evd), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_cno_trigger(server.ia.get(), &evd), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_cno_trigger(cno, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(other, -1);
}

}  // namespace
}  // namespace anydat::test
