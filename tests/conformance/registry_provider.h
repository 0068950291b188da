// SPDX-License-Identifier: BSD-3-Clause
// A Provider inside the test program, to be registered by the test itself.
#pragma once

#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <atomic>
#include <cstddef>
#include <string>

namespace anydat::test {

// Opens and closes IAs, which are counted; every other call gives answer_of() its slot and does nothing else.
class FakeProvider {
 public:
  // What all its handles point to. The first word is the call table (HND-9).
  struct Object {
    const DAT_PROVIDER* provider;
    FakeProvider* owner;
  };

  FakeProvider();
  ~FakeProvider();  // must not be registered any more, unless the process ends with it
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;

  DAT_RETURN add(const DAT_PROVIDER_INFO& info) const;
  DAT_RETURN remove(const DAT_PROVIDER_INFO& info) const;
  Object object() { return {&table, this}; }

  static constexpr DAT_RETURN answer_of(std::size_t slot_offset) {
    return static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_MODEL_NOT_SUPPORTED | static_cast<DAT_RETURN>(slot_offset);
  }

  DAT_PROVIDER table{};
  DAT_RETURN open_result = DAT_SUCCESS;   // an error leaves its OUT arguments changed
  DAT_RETURN close_result = DAT_SUCCESS;  // an error closes nothing
  std::atomic<int> opens{0};
  std::atomic<int> closes{0};
  std::string opened_name;

 private:
  std::size_t number_ = 0;
};

}  // namespace anydat::test
