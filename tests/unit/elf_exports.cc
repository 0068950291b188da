// SPDX-License-Identifier: BSD-3-Clause
#include "unit/elf_exports.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace anydat::test {
namespace {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path + ": build the target dat first");
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
      throw std::runtime_error(path + " is no 64-bit ELF file");
    }
    for (std::size_t i = 0; i < header.e_shnum; ++i) sections_.push_back(at<Elf64_Shdr>(header.e_shoff, i));
  }

  const Elf64_Shdr& section(Elf64_Word type) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == type) return section;
    }
    throw std::runtime_error("an ELF section is missing");
  }

  // The string at `offset` of the string table that belongs to `owner`.
  std::string text(const Elf64_Shdr& owner, std::size_t offset) const {
    return bytes_.data() + sections_.at(owner.sh_link).sh_offset + offset;
  }

  // The element `index` of an array that starts at `offset`, copied out because nothing promises alignment.
  template <typename T>
  T at(std::size_t offset, std::size_t index = 0) const {
    T value;
    if (offset + (index + 1) * sizeof value > bytes_.size()) throw std::runtime_error("an ELF file is cut short");
    std::memcpy(&value, bytes_.data() + offset + index * sizeof value, sizeof value);
    return value;
  }

 private:
  std::vector<char> bytes_;
  std::vector<Elf64_Shdr> sections_;
};

// Version nodes by the index that the version table uses.
std::map<std::size_t, std::string> version_names(const ElfFile& file) {
  std::map<std::size_t, std::string> names;
  const Elf64_Shdr& definitions = file.section(SHT_GNU_verdef);
  std::size_t offset = definitions.sh_offset;
  for (std::size_t i = 0; i < definitions.sh_info; ++i) {
    const auto definition = file.at<Elf64_Verdef>(offset);
    const auto name = file.at<Elf64_Verdaux>(offset + definition.vd_aux);
    names[definition.vd_ndx] = file.text(definitions, name.vda_name);
    offset += definition.vd_next;
  }
  return names;
}

}  // namespace

ElfExports elf_exports(const std::string& path) {
  const ElfFile file(path);
  ElfExports exports;

  const Elf64_Shdr& dynamic = file.section(SHT_DYNAMIC);
  for (std::size_t i = 0; i < dynamic.sh_size / sizeof(Elf64_Dyn); ++i) {
    const auto entry = file.at<Elf64_Dyn>(dynamic.sh_offset, i);
    if (entry.d_tag == DT_SONAME) exports.soname = file.text(dynamic, entry.d_un.d_val);
  }

  const std::map<std::size_t, std::string> versions = version_names(file);
  const Elf64_Shdr& symbols = file.section(SHT_DYNSYM);
  const Elf64_Shdr& version_indexes = file.section(SHT_GNU_versym);
  for (std::size_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = file.at<Elf64_Sym>(symbols.sh_offset, i);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;  // imports, and the nodes themselves
    const auto index = static_cast<std::size_t>(file.at<Elf64_Half>(version_indexes.sh_offset, i) & 0x7fff);
    const auto version = versions.find(index);
    exports.version_of[file.text(symbols, symbol.st_name)] =
        index > VER_NDX_GLOBAL && version != versions.end() ? version->second : "";
  }
  return exports;
}

}  // namespace anydat::test
