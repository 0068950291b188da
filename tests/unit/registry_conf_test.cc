// SPDX-License-Identifier: BSD-3-Clause
// The text of a dat.conf (CONF-9..21), by example, and against a second parser that is as simple as the grammar.
#include "registry/conf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace anydat::registry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kGood = R"(net0 u1.2 nonthreadsafe default libx.so x.1.0 "a b" "")";

std::string one_line(const std::string& field, int place) {
  std::vector<std::string> fields{"net0", "u1.2", "nonthreadsafe", "default", "libx.so", "x.1.0", "data", "platform"};
  fields[static_cast<std::size_t>(place - 1)] = field;
  return fmt::format("{}\n", fmt::join(fields, " "));
}

std::vector<std::string> names(const Conf& conf) {
  std::vector<std::string> list;
  for (const ConfEntry& entry : conf.entries) list.push_back(entry.tuple.name);
  return list;
}

bool is_entry(const std::string& line) {
  return parse_conf(line).entries.size() == 1;
}

TEST(DatConf, AnEntryHasEightFields) {
  const Conf conf = parse_conf("net0 u1.2 threadsafe default /lib/libx.so x.3.4 data \"p q\"\n");
  ASSERT_THAT(conf.entries, SizeIs(1));
  const ConfEntry& entry = conf.entries[0];
  EXPECT_EQ(entry.tuple, (Tuple{"net0", 1, 2, DAT_TRUE}));
  EXPECT_FALSE(entry.kernel_api);
  EXPECT_TRUE(entry.is_default);
  EXPECT_EQ(entry.library, "/lib/libx.so");
  EXPECT_EQ(entry.provider_version, "x.3.4");
  EXPECT_EQ(entry.instance_data, "data");
  EXPECT_EQ(entry.platform_params, "p q");
  EXPECT_THAT(conf.bad_lines, IsEmpty());
}

// CONF-9, CONF-10, CONF-11.
TEST(DatConf, CommentsAndBlanksAreSkipped) {
  EXPECT_THAT(parse_conf("").entries, IsEmpty());
  const Conf nothing = parse_conf("\n# comment\n   \t \n \t# comment # \"\n\n");
  EXPECT_THAT(nothing.entries, IsEmpty());
  EXPECT_THAT(nothing.bad_lines, IsEmpty());
  const std::string good = kGood;
  EXPECT_THAT(names(parse_conf(good + " # behind an entry\n" + good + "#at once\n" + good)),
              ElementsAre("net0", "net0", "net0"));
  EXPECT_FALSE(is_entry("net0 u1.2 nonthreadsafe default libx.so x.1.0 da#ta \"\""))
      << "the comment cuts the fields off";
  const Conf bare = parse_conf("net0 u1.2 nonthreadsafe default libx.so x.1.0 data platform#comment");
  ASSERT_THAT(bare.entries, SizeIs(1));
  EXPECT_EQ(bare.entries[0].platform_params, "platform");
}

// CONF-12: the only special characters between quotes are the quote and the backslash.
TEST(DatConf, QuotesAndEscapesStandForTheirContent) {
  const auto instance_data = [](const std::string& field) {
    const Conf conf = parse_conf(one_line(field, 7));
    return conf.entries.size() == 1 ? conf.entries[0].instance_data : "no entry";
  };
  EXPECT_EQ(instance_data(R"("")"), "");
  EXPECT_EQ(instance_data(R"("a b	c")"), "a b\tc");
  EXPECT_EQ(instance_data(R"("# no comment")"), "# no comment");
  EXPECT_EQ(instance_data(R"("\"")"), "\"");
  EXPECT_EQ(instance_data(R"("\\")"), "\\");
  EXPECT_EQ(instance_data(R"("\n\x")"), "nx");
  EXPECT_TRUE(is_entry(R"("net0" "u1.2" "nonthreadsafe" "default" "libx.so" "x.1.0" "" "")"));
  EXPECT_EQ(parse_conf(R"("two words" u1.2 nonthreadsafe default "a lib" x.1.0 "" "")").entries[0].tuple.name,
            "two words");
}

// CONF-13.
TEST(DatConf, ABackslashInABareFieldIsOrdinary) {
  const Conf conf = parse_conf(one_line(R"(a\b\\)", 7));
  ASSERT_THAT(conf.entries, SizeIs(1));
  EXPECT_EQ(conf.entries[0].instance_data, R"(a\b\\)");
}

// CONF-14, CONF-17, and CONF-16: a carriage return before the newline is a blank, and only there.
TEST(DatConf, AnEntryIsOnePhysicalLine) {
  EXPECT_THAT(parse_conf("net0 u1.2 nonthreadsafe default \\\nlibx.so x.1.0 data \"\"\n").entries, IsEmpty());
  EXPECT_THAT(parse_conf("net0 u1.2 nonthreadsafe default libx.so x.1.0 data \"a\nb\"\n").entries, IsEmpty());
  EXPECT_TRUE(is_entry(kGood)) << "without a newline";
  const Conf dos = parse_conf(std::string(kGood) + "\r\n" + one_line("platform\r", 8) + "\r\n");
  ASSERT_THAT(dos.entries, SizeIs(2));
  EXPECT_EQ(dos.entries[1].platform_params, "platform");
  EXPECT_THAT(dos.bad_lines, IsEmpty());
  EXPECT_EQ(parse_conf(one_line("a\rb", 7)).entries.at(0).instance_data, "a\rb");
}

// CONF-15.
TEST(DatConf, FieldsMayBeLong) {
  const std::string text(100'000, 'x');
  const Conf conf = parse_conf(one_line("\"" + text + "\"", 7));
  ASSERT_THAT(conf.entries, SizeIs(1));
  EXPECT_EQ(conf.entries[0].instance_data, text);
  EXPECT_TRUE(is_entry(one_line(text, 5)));
}

// CONF-20.
TEST(DatConf, AnIaNameHasOneTo255Characters) {
  EXPECT_TRUE(is_entry(one_line(std::string(255, 'n'), 1)));
  EXPECT_FALSE(is_entry(one_line(std::string(256, 'n'), 1)));
  EXPECT_FALSE(is_entry(one_line("\"\"", 1)));
}

// CONF-18: each bad line is put aside, and what follows is read.
TEST(DatConf, BadLinesDoNotHurtTheOthers) {
  const std::vector<std::string> bad{
      "net0",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 data",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 data \"\" more",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 data \"",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 data \"\\\"",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 da\"ta \"\"",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 \"da\"ta \"\"",
      "net0 u1.2 nonthreadsafe default libx.so x.1.0 \"da\"\"ta\" \"\"",
      one_line("\"\"", 5),
  };
  for (const std::string& line : bad) {
    SCOPED_TRACE(line);
    const Conf conf = parse_conf(std::string("# first\n") + line + (line.ends_with('\n') ? "" : "\n") + kGood + "\n");
    EXPECT_THAT(conf.entries, SizeIs(1));
    ASSERT_THAT(conf.bad_lines, SizeIs(1));
    EXPECT_EQ(conf.bad_lines[0].number, 2U);
  }
  constexpr char kWithZero[] = "net0 u1.2 nonthreadsafe default libx.so x.1.0 \"a\0b\" \"\"";
  EXPECT_FALSE(is_entry(std::string(kWithZero, sizeof kWithZero - 1)));
}

// CONF-19: exact words, and versions that are all there.
TEST(DatConf, KeywordsMatchInFull) {
  for (const char* version : {"u1", "u.2", "u1.", "U1.2", "1.2", "ku1.2", "u1.2.3", "u1.x", "u-1.2", "u1,2", "u",
                              "u4294967296.0", "u1.4294967296", "\"\"", "\"u 1.2\"", "u+1.2"}) {
    EXPECT_FALSE(is_entry(one_line(version, 2))) << version;
  }
  EXPECT_EQ(parse_conf(one_line("u4294967295.007", 2)).entries.at(0).tuple, (Tuple{"net0", 4294967295, 7, DAT_FALSE}));
  for (const char* word : {"Threadsafe", "threadsafe1", "thread", "nonthreadsaf", "\"\"", "safe"}) {
    EXPECT_FALSE(is_entry(one_line(word, 3))) << word;
  }
  for (const char* word : {"Default", "def", "defaults", "nondefaul", "no"}) {
    EXPECT_FALSE(is_entry(one_line(word, 4))) << word;
  }
  // Ruling A13.
  for (const char* version : {"x1.0", "x.1", "x.1.0.1", "x.1.b", "x..1", "x.1.", ".1.0", "x.1.-1", "\"\""}) {
    EXPECT_FALSE(is_entry(one_line(version, 6))) << version;
  }
  EXPECT_TRUE(is_entry(one_line("SUNW-1.1.00000000000000000000000", 6)));
}

// CONF-21, CONF-22: such lines are read like any other; who uses the entries leaves them out.
TEST(DatConf, KernelAndNondefaultEntriesAreTold) {
  EXPECT_TRUE(parse_conf(one_line("k1.2", 2)).entries.at(0).kernel_api);
  EXPECT_FALSE(parse_conf(one_line("nondefault", 4)).entries.at(0).is_default);
}

// The second parser: a list of characters, each with whether it was protected by quotes or a backslash, is cut into
// fields. It knows nothing of what the fields mean.
using Fields = std::vector<std::string>;

enum class Kind { nothing, fields, wrong };

Kind naive_fields(const std::string& line, Fields& fields) {
  enum class State { between, bare, quoted, after_quote } state = State::between;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool blank = c == ' ' || c == '\t';
    if (state == State::quoted) {
      if (c == '"') {
        state = State::after_quote;
      } else if (c == '\\') {
        if (i + 1 == line.size()) return Kind::wrong;
        fields.back() += line[++i];
      } else {
        fields.back() += c;
      }
    } else if (c == '#') {
      break;
    } else if (blank) {
      state = State::between;
    } else if (state == State::after_quote) {
      return Kind::wrong;
    } else if (c == '"') {
      if (state == State::bare) return Kind::wrong;
      fields.emplace_back();
      state = State::quoted;
    } else {
      if (state == State::between) fields.emplace_back();
      fields.back() += c;
      state = State::bare;
    }
  }
  if (state == State::quoted) return Kind::wrong;
  return fields.empty() ? Kind::nothing : Kind::fields;
}

// Lines of fragments that often make an entry and often nearly do.
std::string random_line(std::mt19937& random) {
  static const std::vector<std::string> pieces{
      "net0", "u1.2", "u1.1", "k1.2", "threadsafe", "nonthreadsafe", "default",  "nondefault", "libx.so",   "x.1.0",
      "\"\"", "\"",   "#",    "\\",   "\"a b\"",    "\"a#b\"",       "\"\\\"\"", "\r",         "\"a\\\\\"", "\t",
      " ",    "  ",   "a",    ".",    "1",          "\xff"};
  static const std::vector<std::string> good{"net0",    "u1.2",  "nonthreadsafe", "default",
                                             "libx.so", "x.1.0", "\"a b\"",       "\"\""};
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::string line;
  if (below(3) == 0) {
    for (std::size_t n = below(25); n > 0; --n) line += pieces[below(pieces.size())];
    return line;
  }
  for (const std::string& field : good) {
    line += below(12) == 0 ? pieces[below(pieces.size())] : field;
    line += below(12) == 0 ? pieces[below(pieces.size())] : " ";
  }
  return line;
}

TEST(DatConf, CutsLinesLikeTheNaiveParser) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int entries = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string line = random_line(random);
    SCOPED_TRACE(line);
    Fields fields;
    const std::string body = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
    const Kind kind = naive_fields(body, fields);
    const Conf conf = parse_conf(line + "\n" + kGood);
    // The line behind it is always found, whatever the line was.
    ASSERT_FALSE(conf.entries.empty());
    ASSERT_EQ(conf.entries.back().instance_data, "a b");
    const bool entry = conf.entries.size() == 2;
    if (entry) {
      ++entries;
      ASSERT_EQ(kind, Kind::fields);
      ASSERT_THAT(fields, SizeIs(8));
      const ConfEntry& got = conf.entries[0];
      EXPECT_EQ(got.tuple.name, fields[0]);
      EXPECT_EQ((got.kernel_api ? "k" : "u") + fmt::format("{}.{}", got.tuple.major, got.tuple.minor), fields[1]);
      EXPECT_EQ(got.tuple.thread_safe == DAT_TRUE ? "threadsafe" : "nonthreadsafe", fields[2]);
      EXPECT_EQ(got.is_default ? "default" : "nondefault", fields[3]);
      EXPECT_EQ(got.library, fields[4]);
      EXPECT_EQ(got.provider_version, fields[5]);
      EXPECT_EQ(got.instance_data, fields[6]);
      EXPECT_EQ(got.platform_params, fields[7]);
      EXPECT_THAT(conf.bad_lines, IsEmpty());
    } else {
      EXPECT_THAT(conf.bad_lines, SizeIs(kind == Kind::nothing ? 0 : 1));
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(entries, 1000) << "the lines are too wild to test much";
}

TEST(DatConf, NoBytesAreTooWild) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 300, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? "\n\" #\\\r"[random() % 6] : random());
    const Conf conf = parse_conf(text + "\n" + kGood);
    ASSERT_FALSE(conf.entries.empty());
    EXPECT_EQ(conf.entries.back().tuple.name, "net0");
  }
}

}  // namespace
}  // namespace anydat::registry
