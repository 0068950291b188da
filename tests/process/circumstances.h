// SPDX-License-Identifier: BSD-3-Clause
// Circumstances that a program gets into, for processes of tests to get into themselves.
#pragma once

#include <optional>
#include <string>

namespace anydat::test {

// What needs a privilege is to be refused to the superuser as to anybody.
void give_up_looking_into_others();

// The caller goes on as a process of other namespaces (CLONE_NEW...), where its user and group have those numbers, if any
// are given; who called waits for it.
void enter_namespaces(int kinds, std::optional<unsigned> number = {});

// Of a network namespace that has no other device than "lo".
void take_address(const std::string& text);

}  // namespace anydat::test
