// SPDX-License-Identifier: BSD-3-Clause
// What a shared object exports, read from the file itself.
#pragma once

#include <map>
#include <string>

namespace anydat::test {

struct ElfExports {
  std::string soname;
  std::map<std::string, std::string> version_of;  // symbol -> version node, "" if it has none
};

// Reads a 64-bit shared object of this machine's byte order. Throws if it cannot.
ElfExports elf_exports(const std::string& path);

}  // namespace anydat::test
