// SPDX-License-Identifier: BSD-3-Clause
// What the calling thread, its process and its user are called, in its own namespaces.
#pragma once

#include <sys/types.h>

namespace anydat::os {

pid_t own_thread_number();
pid_t own_process_number();
// The one by whose rights the process acts (geteuid(2)).
uid_t own_user();

}  // namespace anydat::os
