// SPDX-License-Identifier: BSD-3-Clause
#include "conformance/registry_provider.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace anydat::test {
namespace {

// An open function is given nothing but a name, and several Providers may have the same: so each has its own function.
constexpr std::size_t kProvidersMax = 8;
std::array<std::atomic<FakeProvider*>, kProvidersMax> providers;

template <std::size_t SlotOffset, typename Function>
struct Slot;

template <std::size_t SlotOffset, typename... Args>
struct Slot<SlotOffset, DAT_RETURN (*)(Args...)> {
  static DAT_RETURN call(Args...) { return FakeProvider::answer_of(SlotOffset); }
};

template <std::size_t Number>
DAT_RETURN open_fake(const DAT_NAME_PTR name, DAT_COUNT, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  FakeProvider& provider = *providers[Number];
  provider.opened_name = name;
  ++provider.opens;
  auto* const object = new FakeProvider::Object(provider.object());
  *async_evd = object;
  *ia = object;
  return provider.open_result;
}

template <std::size_t... Numbers>
constexpr std::array<DAT_IA_OPEN_FUNC, kProvidersMax> open_functions(std::index_sequence<Numbers...>) {
  return {open_fake<Numbers>...};
}

DAT_RETURN close_fake(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS) {
  const auto* object = static_cast<FakeProvider::Object*>(ia);
  FakeProvider& provider = *object->owner;
  if (provider.close_result == DAT_SUCCESS) {
    ++provider.closes;
    delete object;
  }
  return provider.close_result;
}

}  // namespace

FakeProvider::FakeProvider() {
#define ABI_SLOT(index, field, offset, type, call_name) table.field = Slot<offset, type>::call;
#include "unit/abi_facts.inc"
  table.ia_close_func = close_fake;
  for (number_ = 0; number_ < kProvidersMax; ++number_) {
    FakeProvider* nobody = nullptr;
    if (providers[number_].compare_exchange_strong(nobody, this)) {
      table.ia_open_func = open_functions(std::make_index_sequence<kProvidersMax>())[number_];
      return;
    }
  }
  throw std::runtime_error("too many fake Providers");
}

FakeProvider::~FakeProvider() {
  providers[number_] = nullptr;
}

DAT_RETURN FakeProvider::add(const DAT_PROVIDER_INFO& info) const {
  return dat_registry_add_provider(&table, &info);
}

DAT_RETURN FakeProvider::remove(const DAT_PROVIDER_INFO& info) const {
  return dat_registry_remove_provider(&table, &info);
}

}  // namespace anydat::test
