// SPDX-License-Identifier: BSD-3-Clause
#include "face/calls.h"

namespace anydat::face {

DAT_PROVIDER make_provider_table(const char* device_name, DAT_IA_OPEN_FUNC open) {
  // In the order of the ABI, or it does not compile; the ABI test compares it with the table of the standard.
  return {
      .device_name = device_name,
      .extension = nullptr,
      .ia_open_func = open,
#define ANYDAT_CALL(name, subject, cancelling, parameters, arguments) .name##_func = &Edge<name##_call>::call,
#include "face/calls.def"
  };
}

}  // namespace anydat::face
