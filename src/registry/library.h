// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "face/dat.h"

#include <memory>
#include <string>

namespace anydat::registry {

// A Provider's shared object, loaded as long as this lives.
//
// Every call may run code of the Provider, which may call any function of libdat: no lock may be held (REG-ADD-10).
class Library {
 public:
  // Null with the reason in `why` if it does not load.
  static std::unique_ptr<Library> open(const std::string& path, std::string& why);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // False if the library is no Provider: it has no such function (RES-8).
  bool init(const DAT_PROVIDER_INFO& info, const std::string& instance_data);
  // Nothing if the library has no such function (REG-FINI-6).
  void fini(const DAT_PROVIDER_INFO& info);

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* find(const char* symbol) const;

  void* const handle_;
};

}  // namespace anydat::registry
