// SPDX-License-Identifier: BSD-3-Clause
#include "registry/library.h"

#include <dlfcn.h>
#include <link.h>

#include <new>

namespace anydat::registry {

namespace {

link_map* object_of(void* address) {
  Dl_info info;
  link_map* map = nullptr;
  return dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 ? map : nullptr;
}

}  // namespace

std::unique_ptr<Library> Library::open(const std::string& path, std::string& why) {
  // RES-7. Global, so that a Provider made of several libraries finds its own parts.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    const char* error = dlerror();
    why = error ? error : path + " does not load";
    return nullptr;
  }
  return std::unique_ptr<Library>(new Library(handle));
}

Library::~Library() {
  dlclose(handle_);  // IA-CLOSE-19: trouble here is no call's error
}

void* Library::find(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (!address) return nullptr;
  // The search goes on in what a library depends on, which is libdat as a rule, and libdat is a Provider too. It counts
  // only if it is what was loaded.
  static const char here = 0;
  link_map* self = object_of(const_cast<char*>(&here));
  link_map* loaded = nullptr;
  const bool known = dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&loaded)) == 0;
  return known && object_of(address) == self && loaded != self ? nullptr : address;
}

bool Library::init(const DAT_PROVIDER_INFO& info, const std::string& instance_data) {
  const auto call = reinterpret_cast<DAT_PROVIDER_INIT_FUNC>(find(DAT_PROVIDER_INIT_FUNC_STR));
  if (!call) return false;
  call(&info, instance_data.c_str());
  return true;
}

void Library::fini(const DAT_PROVIDER_INFO& info) {
  const auto call = reinterpret_cast<DAT_PROVIDER_FINI_FUNC>(find(DAT_PROVIDER_FINI_FUNC_STR));
  if (call) call(&info);
}

}  // namespace anydat::registry
