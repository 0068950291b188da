// SPDX-License-Identifier: BSD-3-Clause
// Where processes of one host meet: the names that service points listen at, and who is let in.
#pragma once

#include <string>

#include "nic/types.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::shm {

// The abstract socket of a service point: one for each adapter scope ("*" or a network device) and number. Such names
// belong to the network namespace, as addresses do, and leave nothing behind.
std::string service_name(const std::string& scope, ConnQual qual);
os::UniqueFd listen_at(const std::string& name, int& error);

// In a directory that several network namespaces share (DAT_SHM_DIR), a service point has a folder for each address
// that it is reached at, and its number in it. Such names begin with a slash, as abstract ones do not.
std::string folder_name(const std::string& directory, const Address& address);
std::string directory_name(const std::string& directory, const Address& address, ConnQual qual);
// Whether the address means this host to others, too.
bool can_be_published(const Address& address);

// A socket that is connected to who listens at a name of either kind. Empty, and the reason in `error`: EAGAIN if its
// backlog is full.
os::UniqueFd call(const std::string& name, int& error);

// ok: a process of this user listens there; unreachable: none does; no_memory: there is no descriptor to find out with.
Status probe_listener(const std::string& name);

}  // namespace anydat::nic::soft::shm
