// SPDX-License-Identifier: BSD-3-Clause
// Circumstances that a program gets into, for processes of tests to get into themselves.
#pragma once

#include <optional>
#include <string>

namespace anydat::test {

// What needs a privilege is to be refused to the superuser as to anybody.
void give_up_looking_into_others();

// The caller goes on as a process of other namespaces (CLONE_NEW...), where its user and group have those numbers, if
// any are given; who called waits for it.
void enter_namespaces(int kinds, std::optional<unsigned> number = {});

// Of a network namespace that has no other device than "lo". The first address is labelled so, others "lo:1" and so on.
void take_address(const std::string& text, const std::string& label = "lo");
void lose_address(const std::string& label);  // not the first
void set_device_up(bool up);
// Has no IPv6 addresses there any more, whose coming and going others than theirs are found by. False: not permitted.
bool give_up_ipv6();

}  // namespace anydat::test
