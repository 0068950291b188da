// SPDX-License-Identifier: BSD-3-Clause
// What libdat finds in this library.
#include "nic/module.h"

#include "nic/verbs/adapter.h"

extern "C" __attribute__((visibility("default"))) const anydat::nic::Module anydat_nic_module;
const anydat::nic::Module anydat_nic_module{
    {}, &anydat::nic::verbs::VerbsAdapter::open, &anydat::nic::verbs::VerbsAdapter::ask};
