// SPDX-License-Identifier: BSD-3-Clause
// Finding the table behind a handle of another Provider (HND-9), whatever the handle is.
#include "registry/foreign.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "os/own_memory.h"

namespace anydat::registry {
namespace {

using ReadWord = bool (*)(const void*, std::uintptr_t&);

class ReadsWords : public testing::TestWithParam<ReadWord> {};

INSTANTIATE_TEST_SUITE_P(Ways, ReadsWords, testing::Values(&os::read_word, &os::read_word_by_pipe),
                         [](const auto& way) { return way.index == 0 ? "vm" : "pipe"; });

TEST_P(ReadsWords, CopiesWhatIsThere) {
  const std::uintptr_t there = 0x1234'5678'9abc'def0;
  std::uintptr_t word = 0;
  EXPECT_TRUE(GetParam()(&there, word));
  EXPECT_EQ(word, there);
}

TEST_P(ReadsWords, RefusesWhatIsNotThere) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const bytes = static_cast<char*>(memory);
  ASSERT_EQ(mprotect(bytes + page, page, PROT_NONE), 0);
  std::uintptr_t word = 0;
  EXPECT_TRUE(GetParam()(bytes + page - sizeof word, word));
  EXPECT_FALSE(GetParam()(bytes + page, word));
  EXPECT_FALSE(GetParam()(bytes + page - sizeof word / 2, word)) << "half of it is not readable";
  munmap(memory, 2 * page);
  EXPECT_FALSE(GetParam()(bytes, word)) << "not mapped any more";
  EXPECT_FALSE(GetParam()(nullptr, word));
  EXPECT_FALSE(GetParam()(reinterpret_cast<void*>(~std::uintptr_t{7}), word));
  EXPECT_FALSE(GetParam()(reinterpret_cast<void*>(std::uintptr_t{1} << 60), word)) << "no address of this machine";
}

struct Object {
  const DAT_PROVIDER* provider;
};

// A table of this process that only this test uses.
class ForeignHandles : public testing::Test {
 protected:
  ForeignHandles() : table_(tables_.add(&provider_, DAT_VERSION_MAJOR, DAT_VERSION_MINOR)) {}
  ~ForeignHandles() override { tables_.drop(table_); }

  ForeignTables& tables_ = ForeignTables::instance();
  DAT_PROVIDER provider_{};
  ForeignTable* table_;
};

TEST_F(ForeignHandles, AreKnownByTheirFirstWord) {
  Object object{&provider_};
  EXPECT_EQ(tables_.find(&object), table_);
  EXPECT_EQ(tables_.find(&object), table_) << "from memory now";
  DAT_PROVIDER unknown{};
  Object other{&unknown};
  EXPECT_EQ(tables_.find(&other), nullptr);
}

TEST_F(ForeignHandles, ValuesThatAreNoHandlesAreRefused) {
  EXPECT_EQ(tables_.find(DAT_HANDLE_NULL), nullptr);
  EXPECT_EQ(tables_.find(DAT_EVD_ASYNC_EXISTS), nullptr);
  EXPECT_EQ(tables_.find(DAT_EVD_OUT_OF_SCOPE), nullptr);
  alignas(8) char bytes[2 * sizeof(Object)];
  const Object object{&provider_};
  std::memcpy(bytes + 1, &object, sizeof object);
  EXPECT_EQ(tables_.find(bytes + 1), nullptr) << "not aligned";
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(tables_.find(reinterpret_cast<DAT_HANDLE>(random() >> (random() % 64))), nullptr);
  }
}

TEST_F(ForeignHandles, AreForgottenWithTheirTable) {
  Object object{&provider_};
  ForeignTable* again = tables_.add(&provider_, DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
  EXPECT_EQ(again, table_);
  EXPECT_EQ(tables_.find(&object), table_);
  tables_.drop(again);
  EXPECT_EQ(tables_.find(&object), table_) << "one reference is left";
  tables_.drop(table_);
  EXPECT_EQ(tables_.find(&object), nullptr);
  table_ = tables_.add(&provider_, DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
}

// What a thread remembers of a handle ends when handles die, even where the memory is used for something else.
TEST_F(ForeignHandles, AreLookedAtAgainWhenOneHasDied) {
  Object object{&provider_};
  EXPECT_EQ(tables_.find(&object), table_);
  object.provider = nullptr;
  tables_.forget_handles();
  EXPECT_EQ(tables_.find(&object), nullptr);
}

TEST_F(ForeignHandles, AreFoundByManyThreadsWhileTablesComeAndGo) {
  std::vector<Object> objects(100, Object{&provider_});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        for (Object& object : objects) wrong += tables_.find(&object) != table_;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    DAT_PROVIDER other{};
    tables_.drop(tables_.add(&other, DAT_VERSION_MAJOR, DAT_VERSION_MINOR));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// RC-7: what a Provider has not got. The table of an older one ends before the calls of 1.2.
TEST_F(ForeignHandles, ATableMayLackCalls) {
  provider_.srq_free_func = [](DAT_SRQ_HANDLE) -> DAT_RETURN { return DAT_SUCCESS; };
  EXPECT_TRUE(table_->has(&DAT_PROVIDER::srq_free_func));
  EXPECT_FALSE(table_->has(&DAT_PROVIDER::pz_free_func));
  DAT_PROVIDER old{};
  old.pz_free_func = [](DAT_PZ_HANDLE) -> DAT_RETURN { return DAT_SUCCESS; };
  old.srq_free_func = provider_.srq_free_func;
  ForeignTable* table = tables_.add(&old, DAT_VERSION_MAJOR, 1);
  EXPECT_TRUE(table->has(&DAT_PROVIDER::pz_free_func));
  EXPECT_FALSE(table->has(&DAT_PROVIDER::srq_free_func)) << "that memory is not the table's";
  tables_.drop(table);
}

// D2-REG-3: the calls of another major version have other parameters.
TEST_F(ForeignHandles, ATableOfAnotherMajorVersionIsNeverCalled) {
  DAT_PROVIDER other{};
  ForeignTable* const table = tables_.add(&other, DAT_VERSION_MAJOR + 1, 0);
  Object object{&other};
  EXPECT_EQ(tables_.find(&object), nullptr);
  tables_.add(&other, DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
  EXPECT_EQ(tables_.find(&object), table) << "registered for ours, too";
  tables_.drop(table);
  tables_.drop(table);
}

}  // namespace
}  // namespace anydat::registry
