// SPDX-License-Identifier: BSD-3-Clause
// dat_strerror, rule by rule (STRERR-1 to STRERR-11), against the names and values of the ABI table.
#include <dat/udat.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "unit/abi_table.h"

namespace anydat::test {
namespace {

struct Named {
  std::string name;
  DAT_RETURN value;
};

// The enumerators of one enumeration of the ABI table.
std::vector<Named> enumerators(const std::string& type) {
  std::vector<Named> found;
  for (const AbiRow& row : abi_rows("const")) {
    if (row[4] == "enum " + type) found.push_back({row[1], static_cast<DAT_RETURN>(std::stoul(row[2], nullptr, 16))});
  }
  return found;
}

struct Words {
  DAT_RETURN status = DAT_INTERNAL_ERROR;
  std::string major, minor;
};

Words words_of(DAT_RETURN value) {
  const char* major = nullptr;
  const char* minor = nullptr;
  Words words;
  words.status = dat_strerror(value, &major, &minor);
  words.major = major != nullptr ? major : "(null)";
  words.minor = minor != nullptr ? minor : "(null)";
  return words;
}

// STRERR-1, STRERR-2, and the types of STRERR-4 (DAT_CONN_QUAL_UNAVAILABLE and DAT_NOT_IMPLEMENTED included).
TEST(Strerror, EveryTypeHasItsName) {
  const std::vector<Named> types = enumerators("DAT_RETURN_TYPE");
  ASSERT_EQ(types.size(), 22U);
  for (const Named& type : types) {
    const Words words = words_of(type.value);
    EXPECT_EQ(words.status, DAT_SUCCESS) << type.name;
    EXPECT_EQ(words.major, type.name);
    EXPECT_EQ(words.minor, "") << type.name;
  }
}

// STRERR-2, STRERR-4, STRERR-7: every subtype, of whatever type, under a type it does not belong to.
TEST(Strerror, EverySubtypeHasItsNameUnderAnyType) {
  const std::vector<Named> subtypes = enumerators("DAT_RETURN_SUBTYPE");
  ASSERT_EQ(subtypes.size(), 102U);
  for (const Named& subtype : subtypes) {
    const Words words = words_of(DAT_CLASS_ERROR | DAT_QUEUE_FULL | subtype.value);
    EXPECT_EQ(words.status, DAT_SUCCESS) << subtype.name;
    EXPECT_EQ(words.major, "DAT_QUEUE_FULL");
    EXPECT_EQ(words.minor, subtype.value == 0 ? "" : subtype.name);
  }
  EXPECT_EQ(words_of(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_RO_COOKIE).minor, "DAT_INVALID_RO_COOKIE");
}

// STRERR-2: the standard's own example.
TEST(Strerror, TypeAndSubtypeAreNamedSeparately) {
  const Words words = words_of(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_CONN);
  EXPECT_EQ(words.status, DAT_SUCCESS);
  EXPECT_EQ(words.major, "DAT_INVALID_HANDLE");
  EXPECT_EQ(words.minor, "DAT_INVALID_HANDLE_EVD_CONN");
}

// STRERR-3, RC-1.
TEST(Strerror, SuccessSucceeds) {
  const Words words = words_of(DAT_SUCCESS);
  EXPECT_EQ(words.status, 0U);
  EXPECT_EQ(words.major, "DAT_SUCCESS");
  EXPECT_EQ(words.minor, "");
}

// STRERR-5: also for DAT_NOT_IMPLEMENTED, whose value covers the class bits (ruling A4), and its Solaris value.
TEST(Strerror, ClassBitsDoNotMatter) {
  for (const DAT_RETURN class_bits : {DAT_CLASS_SUCCESS, DAT_CLASS_WARNING, DAT_CLASS_ERROR, 0xc0000000U}) {
    const Words words = words_of(class_bits | DAT_ABORT | DAT_SUB_INTERRUPTED);
    EXPECT_EQ(words.status, DAT_SUCCESS);
    EXPECT_EQ(words.major, "DAT_ABORT");
    EXPECT_EQ(words.minor, "DAT_SUB_INTERRUPTED");
    EXPECT_EQ(words_of(class_bits | 0x3fff0000U).major, "DAT_NOT_IMPLEMENTED");
    EXPECT_EQ(words_of(class_bits | 0x0fff0000U).major, "DAT_NOT_IMPLEMENTED");
  }
}

// STRERR-6. Old programs print the messages without a look at the return, so they are set all the same.
TEST(Strerror, UndefinedCodesAreRefusedAndStillGiveText) {
  const DAT_RETURN undefined[] = {
      DAT_CONN_QUAL_UNAVAILABLE + 0x10000U,                       // the first type that is not one
      0x3ffe0000U,                                                // the last
      DAT_INVALID_PARAMETER | (DAT_INVALID_RO_COOKIE + 1U),       // the first subtype that is not one
      DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_SUBTYPE_MASK  // the last
  };
  for (const DAT_RETURN value : undefined) {
    const Words words = words_of(value);
    EXPECT_EQ(DAT_GET_TYPE(words.status), DAT_INVALID_PARAMETER) << value;
    EXPECT_NE(words.status & DAT_CLASS_ERROR, 0U) << value;
    EXPECT_NE(words.major, "(null)") << value;
    EXPECT_NE(words.minor, "(null)") << value;
    EXPECT_FALSE(words.major.empty()) << value;
  }
  EXPECT_EQ(words_of(undefined[2]).major, "DAT_INVALID_PARAMETER");
}

// STRERR-8: without a place for the minor message the subtype is not even looked at.
TEST(Strerror, MinorMessageMayBeNull) {
  const char* major = nullptr;
  EXPECT_EQ(dat_strerror(DAT_INVALID_STATE | DAT_SUBTYPE_MASK, &major, nullptr), DAT_SUCCESS);
  EXPECT_STREQ(major, "DAT_INVALID_STATE");
}

// STRERR-9.
TEST(Strerror, MajorMessageMayNotBeNull) {
  const char* minor = nullptr;
  EXPECT_EQ(DAT_GET_TYPE(dat_strerror(DAT_SUCCESS, nullptr, &minor)), DAT_INVALID_PARAMETER);
  EXPECT_EQ(DAT_GET_TYPE(dat_strerror(DAT_SUCCESS, nullptr, nullptr)), DAT_INVALID_PARAMETER);
}

// STRERR-10, STRERR-11: the same constant strings for every thread, here where no IA was ever opened.
TEST(Strerror, StringsAreConstantAndSharedByThreads) {
  const auto message = [](const char** major) { return dat_strerror(DAT_QUEUE_EMPTY, major, nullptr); };
  const char* here = nullptr;
  const char* there = nullptr;
  ASSERT_EQ(message(&here), DAT_SUCCESS);
  std::thread other([&] { message(&there); });
  other.join();
  EXPECT_EQ(here, there);
  EXPECT_STREQ(here, "DAT_QUEUE_EMPTY");
}

// RC-2: types carry no class bits, so that class, type and subtype can be or-ed; DAT_NOT_IMPLEMENTED is the exception.
TEST(ReturnCodes, TypesAndSubtypesStayInTheirBits) {
  for (const Named& type : enumerators("DAT_RETURN_TYPE")) {
    if (type.value == DAT_NOT_IMPLEMENTED) continue;
    EXPECT_EQ(DAT_GET_TYPE(type.value), type.value) << type.name;
  }
  for (const Named& subtype : enumerators("DAT_RETURN_SUBTYPE")) {
    EXPECT_EQ(DAT_GET_SUBTYPE(subtype.value), subtype.value) << subtype.name;
  }
  EXPECT_EQ(static_cast<DAT_RETURN>(DAT_NOT_IMPLEMENTED), 0xffff0000U);
}

}  // namespace
}  // namespace anydat::test
