// SPDX-License-Identifier: BSD-3-Clause
// A program outside this project: uses the installed headers and the installed library, in C++.
#include <anydat/anydat.h>
#include <dat/udat.h>

#include <cstdio>
#include <string>

int main() {
  std::string name = "soft-lo";
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  if (dat_ia_open(name.data(), 8, &async_evd, &ia) != DAT_SUCCESS) {
    std::fprintf(stderr, "%s\n", anydat_last_error());
    return 1;
  }
  DAT_PROVIDER_ATTR provider{};
  if (dat_ia_query(ia, nullptr, DAT_IA_FIELD_NONE, nullptr, DAT_PROVIDER_FIELD_ALL, &provider) != DAT_SUCCESS) return 1;
  if (provider.srq_supported == DAT_FALSE) return 1;
  if (dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) return 1;
  std::puts("C++ consumer: opened and closed");
}
