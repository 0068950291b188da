// SPDX-License-Identifier: BSD-3-Clause
#include "support/properties.h"

#include <stdexcept>

namespace anydat::test {

std::string provider_attribute(const Ia& ia, std::string_view name) {
  const DAT_PROVIDER_ATTR attr = ia.provider();
  for (DAT_COUNT i = 0; i < attr.num_provider_specific_attr; ++i) {
    if (name == attr.provider_specific_attr[i].name) {
      return attr.provider_specific_attr[i].value;
    }
  }
  throw std::runtime_error("the provider has no attribute " + std::string(name));
}

bool messages_wait(const Ia& ia) {
  return provider_attribute(ia, "ANYDAT_RECEIVER_NOT_READY_MS") != "0";
}

bool remote_errors_told(const Ia& ia) {
  return provider_attribute(ia, "ANYDAT_REMOTE_ERRORS") == "told";
}

}  // namespace anydat::test
