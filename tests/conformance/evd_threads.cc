// SPDX-License-Identifier: BSD-3-Clause
// Calls from many threads: section 1.6 of part 1, on dispatchers and notification objects.
#include <algorithm>
#include <future>
#include <map>
#include <mutex>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

// A value tells its poster and its number there.
std::uintptr_t numbered(int poster, int number) {
  return static_cast<std::uintptr_t>(poster) << 32 | static_cast<std::uintptr_t>(number);
}

class Deadline {
 public:
  bool in_time() const { return std::chrono::steady_clock::now() < end_; }

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + patience();
};

// What several threads took between them.
class Harvest {
 public:
  void add(std::vector<std::uintptr_t> taken) {
    const std::lock_guard guard(lock_);
    // One thread alone meets the events of one poster in their order, whatever the others take.
    std::map<std::uintptr_t, std::uintptr_t> last;
    for (const std::uintptr_t value : taken) {
      std::uintptr_t& before = last[value >> 32];
      if (value <= before) ADD_FAILURE() << "a thread met " << std::hex << value << " after " << before;
      before = value;
    }
    all_.insert(all_.end(), taken.begin(), taken.end());
  }

  void expect_each_once(int posters, int per_poster) {
    std::vector<std::uintptr_t> expected;
    for (int poster = 1; poster <= posters; ++poster) {
      for (int number = 1; number <= per_poster; ++number) {
        expected.push_back(numbered(poster, number));
      }
    }
    std::sort(all_.begin(), all_.end());
    EXPECT_EQ(all_, expected);
  }

 private:
  std::mutex lock_;
  std::vector<std::uintptr_t> all_;
};

class EvdThreads : public EvdTest {
 protected:
  static constexpr int kPosters = 3;
  static constexpr int kPerPoster = 400;

  void post_all(int poster, const Deadline& deadline) {
    for (int number = 1; number <= kPerPoster && deadline.in_time();) {
      if (try_post(evd.get(), numbered(poster, number)) == DAT_SUCCESS) {
        ++number;
      } else {
        std::this_thread::yield();
      }
    }
  }

  // Runs the posters, and `takers` threads that call `take_one` until all has been taken.
  void pass_all(int takers, const std::function<DAT_RETURN(int, DAT_EVENT*)>& take_one, Harvest& harvest) {
    const Deadline deadline;
    std::atomic<int> left = kPosters * kPerPoster;
    in_threads(kPosters + takers, [&](int index) {
      if (index < kPosters) {
        post_all(index + 1, deadline);
        return;
      }
      std::vector<std::uintptr_t> taken;
      while (left > 0 && deadline.in_time()) {
        DAT_EVENT event{};
        const DAT_RETURN rc = take_one(index, &event);
        if (rc == DAT_SUCCESS) {
          taken.push_back(value_of(event));
          --left;
        } else if (!is_type(rc, DAT_QUEUE_EMPTY) && !is_type(rc, DAT_TIMEOUT_EXPIRED) &&
                   !is_type(rc, DAT_INVALID_STATE)) {
          ADD_FAILURE() << describe(rc);
        }
      }
      harvest.add(std::move(taken));
    });
    EXPECT_EQ(left, 0);
  }
};

// THR-1, THR-7, EVM-13, EVM-9, EVD-DEQ-7, EVD-DEQ-11
TEST_P(EvdThreads, DequeuingThreadsShareTheEventsBetweenThem) {
  Harvest harvest;
  pass_all(
      3, [&](int, DAT_EVENT* event) { return dat_evd_dequeue(evd.get(), event); }, harvest);
  harvest.expect_each_once(kPosters, kPerPoster);
}

// THR-1, EVM-13, EVM-39, EVD-WAIT-22, EVD-WAIT-25: one of them blocks at a time, the others are refused meanwhile.
TEST_P(EvdThreads, WaitingAndDequeuingThreadsShareTheEventsBetweenThem) {
  Harvest harvest;
  pass_all(
      4,
      [&](int index, DAT_EVENT* event) {
        if (index % 2 == 0) return dat_evd_dequeue(evd.get(), event);
        DAT_COUNT more = 0;
        return dat_evd_wait(evd.get(), index % 4 == 1 ? 0 : 2000, 1, event, &more);
      },
      harvest);
  harvest.expect_each_once(kPosters, kPerPoster);
}

// THR-1, EVM-10, EVD-WAIT-26: one consumer meets the events of each stream in their order.
TEST_P(EvdThreads, OneWaiterMeetsAllInOrder) {
  Harvest harvest;
  pass_all(
      1,
      [&](int, DAT_EVENT* event) {
        DAT_COUNT more = 0;
        return dat_evd_wait(evd.get(), 100'000, 1, event, &more);
      },
      harvest);
  harvest.expect_each_once(kPosters, kPerPoster);
}

// THR-4: what is Unsafe on one handle runs in one thread beside the Safe calls of others.
TEST_P(EvdThreads, UnsafeCallsInOneThreadDoNotDisturbSafeOnes) {
  const Cno cno(ia);
  Harvest harvest;
  std::atomic<bool> done = false;
  std::thread unsafe([&] {
    DAT_CONTEXT context{};
    DAT_HANDLE_TYPE type{};
    while (!done) {
      EXPECT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
      EXPECT_EQ(query_evd(evd.get()).evd_qlen, kLength);
      EXPECT_THAT(dat_set_consumer_context(evd.get(), context), Succeeds());
      EXPECT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
      EXPECT_THAT(dat_get_handle_type(evd.get(), &type), Succeeds());
      EXPECT_THAT(dat_evd_disable(evd.get()), Succeeds());
      EXPECT_THAT(dat_evd_enable(evd.get()), Succeeds());
      std::this_thread::yield();
    }
  });
  pass_all(
      2,
      [&](int, DAT_EVENT* event) {
        DAT_COUNT more = 0;
        return dat_evd_wait(evd.get(), 2000, 1, event, &more);
      },
      harvest);
  done = true;
  unsafe.join();
  harvest.expect_each_once(kPosters, kPerPoster);
}

// THR-3, THR-2: threads that each have objects of their own need not know of one another.
TEST_P(EvdThreads, CallsOnDifferentObjectsRunInParallel) {
  in_threads(4, [&](int thread) {
    for (int round = 0; round < 40; ++round) {
      const Cno cno(ia);
      Evd mine(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
      DAT_CONTEXT context{};
      context.as_64 = static_cast<DAT_UINT64>(thread * 1000 + round);
      EXPECT_THAT(dat_set_consumer_context(mine.get(), context), Succeeds());
      post(mine.get(), context.as_64);
      EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, mine.get());
      EXPECT_THAT(dat_evd_resize(mine.get(), 9), Succeeds());
      EXPECT_EQ(query_evd(mine.get()).cno_handle, cno.get());
      EXPECT_EQ(value_of(wait_evd(mine.get(), 0).event), context.as_64);
      DAT_CONTEXT read{};
      EXPECT_THAT(dat_get_consumer_context(mine.get(), &read), Succeeds());
      EXPECT_EQ(read.as_64, context.as_64);
      EXPECT_THAT(mine.free(), Succeeds());
    }
  });
}

// THR-6, THR-7: opened as thread safe, which it then says of itself, all calls on one object may run at once. The
// library is one and the same for those who did not ask for it.
TEST_P(EvdThreads, AllCallsOnOneObjectMayRunAtOnce) {
  std::string name = GetParam().ia_name;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE thread_safe = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_ia_openv(name.data(), 8, &async_evd, &thread_safe, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE),
              Succeeds());
  DAT_PROVIDER_ATTR attr{};
  ASSERT_THAT(dat_ia_query(thread_safe, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), Succeeds());
  ASSERT_EQ(attr.is_thread_safe, DAT_TRUE);
  CountingAgent agent;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE one = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_cno_create(thread_safe, no_agent(), &cno), Succeeds());
  ASSERT_THAT(dat_evd_create(thread_safe, kLength, cno, DAT_EVD_SOFTWARE_FLAG, &one), Succeeds());
  std::atomic<int> posted = 0;
  std::atomic<int> taken = 0;
  const auto calls = std::vector<std::function<void()>>{
      [&] { posted += try_post(one) == DAT_SUCCESS ? 1 : 0; },
      [&] { posted += try_post(one) == DAT_SUCCESS ? 1 : 0; },
      [&] { taken += poll_event(one) ? 1 : 0; },
      [&] { taken += wait_evd(one, 0).rc == DAT_SUCCESS ? 1 : 0; },
      [&] { wait_cno(cno, 0); },
      [&] { wait_cno(cno, 100); },
      [&] { dat_evd_resize(one, 20); },
      [&] { dat_evd_resize(one, 40); },
      [&] { dat_evd_modify_cno(one, DAT_HANDLE_NULL); },
      [&] { dat_evd_modify_cno(one, cno); },
      [&] { dat_evd_enable(one); },
      [&] { query_evd(one); },
      [&] { query_cno(cno); },
      [&] { dat_cno_modify_agent(cno, agent.agent()); },
      [&] { dat_cno_modify_agent(cno, no_agent()); },
  };
  in_threads(static_cast<int>(calls.size()), [&](int index) {
    for (int i = 0; i < 150; ++i) {
      calls[static_cast<std::size_t>(index)]();
    }
  });
  EXPECT_EQ(static_cast<int>(take_all(one).size()), posted - taken);
  EXPECT_THAT(dat_ia_close(thread_safe, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
}

// BLK-1, EVD-POST-11, CNO-QUERY-5: threads that wait hold up no call.
TEST_P(EvdThreads, NoCallBlocksBecauseOthersWait) {
  const Cno cno(ia);
  const Evd noting(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  BlockedWait waiter(evd.get(), 2);
  BlockedCnoWait cno_waiter(cno.get());
  auto others = std::async(std::launch::async, [&] {
    DAT_CONTEXT context{};
    DAT_HANDLE_TYPE type{};
    DAT_EVENT event{};
    DAT_IA_ATTR attributes{};
    const char* major = nullptr;
    const char* minor = nullptr;
    for (const DAT_HANDLE object : {DAT_HANDLE{ia.get()}, evd.get(), cno.get()}) {
      dat_set_consumer_context(object, context);
      dat_get_consumer_context(object, &context);
      dat_get_handle_type(object, &type);
    }
    dat_strerror(DAT_SUCCESS, &major, &minor);
    dat_ia_query(ia.get(), nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr);
    query_evd(evd.get());
    dat_evd_enable(evd.get());
    dat_evd_disable(evd.get());
    dat_evd_dequeue(evd.get(), &event);
    dat_evd_resize(evd.get(), 4);
    wait_evd(evd.get(), DAT_TIMEOUT_INFINITE);  // refused
    post(evd.get());
    dat_evd_modify_cno(evd.get(), cno.get());
    dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL);
    wait_cno(cno.get(), 0);
    query_cno(cno.get());
    dat_cno_modify_agent(cno.get(), no_agent());
    dat_cno_free(cno.get());  // refused
    Ia second(GetParam());
    EXPECT_THAT(second.close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    const Cno made(ia);
    const Evd evd_made(ia, DAT_EVD_SOFTWARE_FLAG, 4);
    post(evd_made.get());
    wait_evd(evd_made.get(), 0);
    wait_cno(made.get(), 1);
  });
  ASSERT_EQ(others.wait_for(patience()), std::future_status::ready);
  EXPECT_FALSE(waiter.returned_within(std::chrono::milliseconds(0)));
  EXPECT_FALSE(cno_waiter.returned_within(std::chrono::milliseconds(0)));
  post(evd.get());
  post(noting.get());
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_THAT(cno_waiter.result().rc, Succeeds());
}

ANYDAT_OVER_ALL_WIRES(EvdThreads);

}  // namespace
}  // namespace anydat::test
