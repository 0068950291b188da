// SPDX-License-Identifier: BSD-3-Clause
// Which file is the static registry (CONF-1..5, CONF-7), and what its lines amount to (CONF-21..25).
#include "registry/static_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace anydat::registry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

MATCHER_P(IsNamed, name, "") {
  return arg.tuple.name == name;
}

std::string line(const std::string& name, const std::string& library, const std::string& version = "u1.2",
                 const std::string& flag = "default", const std::string& data = "d") {
  return name + " " + version + " nonthreadsafe " + flag + " " + library + " x.1.0 " + data + " \"\"\n";
}

class StaticRegistryFile : public testing::Test {
 protected:
  StaticRegistryFile() {
    std::string pattern = testing::TempDir() + "anydat-static-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~StaticRegistryFile() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }
  std::string no_file() const { return directory_ / "missing"; }
  std::string directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

// CONF-2.
TEST_F(StaticRegistryFile, TheOverrideIsReadInstead) {
  const std::string mine = file("mine", line("mine", "a"));
  const std::string standard = file("standard", line("standard", "a"));
  const StaticRegistry registry = read_static_registry(mine.c_str(), std::array{standard.c_str()});
  EXPECT_THAT(registry.entries, ElementsAre(IsNamed("mine")));
  EXPECT_FALSE(registry.missing);
  EXPECT_FALSE(registry.lists_builtins);
}

// CONF-3, CONF-1: each default in turn.
TEST_F(StaticRegistryFile, TheFirstDefaultThatCanBeReadCounts) {
  const std::string first = file("first", line("first", "a"));
  const std::string second = file("second", line("second", "a"));
  const std::string none = no_file();
  EXPECT_THAT(read_static_registry(nullptr, std::array{first.c_str(), second.c_str()}).entries,
              ElementsAre(IsNamed("first")));
  const StaticRegistry fallback = read_static_registry(nullptr, std::array{none.c_str(), second.c_str()});
  EXPECT_THAT(fallback.entries, ElementsAre(IsNamed("second")));
  EXPECT_TRUE(fallback.lists_builtins);
}

TEST_F(StaticRegistryFile, WithoutAnyDefaultTheBuiltInAdaptersAreTheRegistry) {
  const std::string none = no_file();
  const StaticRegistry registry = read_static_registry(nullptr, std::array{none.c_str()});
  EXPECT_THAT(registry.entries, IsEmpty());
  EXPECT_FALSE(registry.missing);
  EXPECT_TRUE(registry.lists_builtins);
}

// CONF-4, CONF-5.
TEST_F(StaticRegistryFile, AnOverrideThatCannotBeReadHasNoFallback) {
  const std::string standard = file("standard", line("standard", "a"));
  for (const std::string& path : {no_file(), directory(), std::string()}) {
    const StaticRegistry registry = read_static_registry(path.c_str(), std::array{standard.c_str()});
    EXPECT_TRUE(registry.missing) << path;
    EXPECT_THAT(registry.entries, IsEmpty());
  }
}

// CONF-7.
TEST_F(StaticRegistryFile, AnEmptyFileIsARegistry) {
  for (const char* text : {"", "\n", "# nothing\n"}) {
    const StaticRegistry registry = read_static_registry(file("empty", text).c_str(), {});
    EXPECT_FALSE(registry.missing);
    EXPECT_THAT(registry.entries, IsEmpty());
  }
}

TEST_F(StaticRegistryFile, ALongFileIsReadToItsEnd) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += line("net" + std::to_string(i), "a");
  const StaticRegistry registry = read_static_registry(file("long", text).c_str(), {});
  ASSERT_THAT(registry.entries, SizeIs(1000));
  EXPECT_THAT(registry.entries.back(), IsNamed("net999"));
}

// CONF-21, CONF-22, CONF-23, CONF-24.
TEST(StaticEntries, LeaveOutKernelAndNondefaultLinesAndKeepTheOrder) {
  const Conf conf = parse_conf(line("b", "1") + line("k", "2", "k1.2") + line("a", "3", "u2.0") +
                               line("n", "4", "u1.2", "nondefault") + line("c", "5"));
  EXPECT_THAT(static_entries(conf.entries), ElementsAre(IsNamed("b"), IsNamed("a"), IsNamed("c")));
}

// D2-CONF-4: patterns are no entries, which are what is listed.
TEST_F(StaticRegistryFile, PatternsStandApart) {
  const std::string path = file("patterns", line("a*", "1") + line("b", "2") + line("*", "3") + line("a*c", "4"));
  const StaticRegistry registry = read_static_registry(path.c_str(), {});
  EXPECT_THAT(registry.entries, ElementsAre(IsNamed("b"), IsNamed("a*c")));
  EXPECT_THAT(registry.patterns, ElementsAre(IsNamed("a*"), IsNamed("*")));
}

// CONF-25.
TEST(StaticEntries, LinesOfOneTupleAreOneEntryWithSeveralLibraries) {
  const Conf conf = parse_conf(line("a", "1") + line("b", "2") + line("a", "3", "u1.2", "default", "e") +
                               line("a", "4", "u1.1") + line("a", "5", "u1.2", "nondefault"));
  const std::vector<StaticEntry> entries = static_entries(conf.entries);
  ASSERT_THAT(entries, ElementsAre(IsNamed("a"), IsNamed("b"), IsNamed("a")));
  ASSERT_THAT(entries[0].libraries, SizeIs(2));
  EXPECT_EQ(entries[0].libraries[0].path, "1");
  EXPECT_EQ(entries[0].libraries[1].path, "3");
  EXPECT_EQ(entries[0].libraries[1].instance_data, "e");
  EXPECT_EQ(entries[2].tuple.minor, 1U);
}

}  // namespace
}  // namespace anydat::registry
