// SPDX-License-Identifier: BSD-3-Clause
// The one table of what a peer may have of a turn, and strangers of an adapter. A thread that serves a peer stops when
// the turn's budget is used up and comes back when the others have had theirs, so that none of them decides by how much
// it sends how long the others wait. docs/concurrency.md has the table in words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::nic::budget {

// Those who call at a listening socket, of one socket in one turn.
inline constexpr int kCallersPerTurn = 64;
// What a device's connection manager tells, most of it by callers, in one turn of its descriptor.
inline constexpr int kCmEventsPerTurn = 64;
// What a device tells by itself, in one turn of its descriptor.
inline constexpr int kDeviceEventsPerTurn = 64;
// TCP connections that are looked at for a host that says nothing any more, at once.
inline constexpr std::size_t kSilenceLooksPerTurn = 64;

// One TCP connection, in one turn. It ends earlier where others wait: after the first message, or after so many bytes
// of what is longer.
inline constexpr int kReadsPerTurn = 16;
inline constexpr std::size_t kReadPerTurn = 512 << 10;
inline constexpr std::size_t kReadWhileOthersWait = 64 << 10;
// The other direction: what the engine sends for one connection, of its program's posts and in answer to Reads.
inline constexpr std::size_t kSentPerTurn = 1 << 20;
inline constexpr std::size_t kSentWhileOthersWait = 128 << 10;
// Sockets that epoll names, in one pass.
inline constexpr std::size_t kReadyPerPass = 64;

// A local peer. Messages of one link, and its datagrams: bells, and regions that it shows.
inline constexpr int kMessagesPerTurn = 64;
inline constexpr int kDatagramsPerTurn = 64;
// Pieces of one long message, or of RDMA, through the bulk ring, with the engine or the send lock held.
inline constexpr int kPiecesPerTurn = 32;
// What the engine reads of long messages out of their senders' memory, of one message and of all of a connection.
inline constexpr std::uint64_t kPulledOfOne = 256 << 10;
inline constexpr std::uint64_t kPulledPerTurn = 512 << 10;
// One stretch of RDMA, a tenth of a millisecond: a thread that frees memory waits that long, and so do other posts to
// the queue pair. By the kernel, and in memory that is mapped here. The latter is a memfd (shm::Link), whose pages no
// program can withhold; of others nothing is touched that may not be in memory.
inline constexpr std::uint64_t kCopiedByKernelPerTurn = 256 << 10;
inline constexpr std::uint64_t kCopiedInMemoryPerTurn = 4 << 20;

// Completions of one queue of a device, in so many looks of so many each.
inline constexpr int kCompletionLooksPerTurn = 8;
inline constexpr int kCompletionsPerLook = 32;

// A TCP socket whose connection is over is read until the peer has hung up, too, so that TCP does not throw away what
// the peer has not read yet. In one turn, and in all: a peer that has been told that it is over has no more to say than
// the sockets hold, and one that was never let in should not have said anything.
inline constexpr std::size_t kUnheardPerTurn = 64 << 10;
inline constexpr std::size_t kUnheardOfPeer = 64 << 20;
inline constexpr std::size_t kUnheardOfStranger = 256 << 10;
// Such sockets of peers at once; with one more the oldest of the host with the most of them goes. Strangers have a
// share of the descriptors.
inline constexpr std::size_t kLingeringPeers = 4096;

// What a local peer is told and does not take: rejections and ends, for which it may ask as often as it likes without
// one connection of ours, and for each connection far more than a peer can have under way that keeps to what it is
// told. With one more its link is cut.
inline constexpr std::size_t kAnswersUntaken = 128 << 10;
inline constexpr std::size_t kAnswersUntakenOfConnection = 1024;

}  // namespace anydat::nic::budget
