// SPDX-License-Identifier: BSD-3-Clause
// Bytes written by hand: "4d 50 41" and text in quotes, '...'.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace anydat::test {

using Bytes = std::vector<std::byte>;

inline Bytes hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
    } else if (text[i] == '\'') {
      for (++i; text.at(i) != '\''; ++i) bytes.push_back(static_cast<std::byte>(text[i]));
      ++i;
    } else {
      bytes.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
      i += 2;
    }
  }
  return bytes;
}

inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline Bytes repeat(std::size_t count, unsigned value = 0) {
  return Bytes(count, static_cast<std::byte>(value));
}

}  // namespace anydat::test
