// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/link.h"

namespace anydat::nic::soft::shm {

class Fabric;

// One connection over a link.
//
// A small message is written into the link's ring by the posting thread and is done. It needs room in the connection's
// window: cells that the receiver has not delivered yet count against it, so a receiver without buffers holds back this
// connection and nobody else. A large message is announced; the receiver grants it once it has taken a buffer, and then
// its pieces cross through the bulk ring as fast as there is room.
class ShmStream final : public Stream {
 public:
  ShmStream(Fabric& fabric, SoftQueuePair& queue_pair);
  ~ShmStream() override;

  std::uint32_t name() const { return name_; }  // what the peer calls this end
  const std::shared_ptr<Link>& link() const { return link_; }
  void attach(std::shared_ptr<Link> link);
  void set_remote(std::uint32_t remote) { remote_ = remote; }
  bool awaits_ready_from(std::uint32_t remote) const;

  // Stream
  SendOutcome send(std::uint64_t number, const Outgoing& message) override;
  void resume_receiving() override;
  bool holds_messages() const override { return !parked_.empty(); }
  void close(CloseReason reason) override;

  // For the link and the fabric.
  bool arrived(const CellView& view);  // false: malformed, as are the others
  bool accept_arrived(const CellView& view);
  void piece_arrived(const std::byte* bytes, std::size_t count);
  void close_arrived(CloseReason reason);
  void link_lost();
  void connect_failed(ConnectFailure why) { queue_pair_.connect_failed(why); }
  void room_available();

 private:
  friend class Link;

  struct Parked {
    std::uint64_t length;
    std::uint32_t cells;
    bool announced;
    bool solicited;
    std::unique_ptr<std::byte[]> bytes;
  };

  SendOutcome announce(std::uint64_t number, const Outgoing& message);
  bool send_pieces();
  enum class PieceResult : std::uint8_t { sent, no_room, failed, gone };
  PieceResult send_piece(std::uint64_t number);
  bool message_arrived(const CellView& view);
  bool announce_arrived(const CellView& view);
  bool count_arrival(std::uint32_t cells);
  void delivered(std::uint32_t cells);
  void violated(const char* what);
  bool accept_announced(std::uint64_t length, bool solicited);

  Fabric& fabric_;
  SoftQueuePair& queue_pair_;
  std::shared_ptr<Link> link_;
  std::size_t link_index_ = 0;  // for the link
  std::uint32_t name_ = 0;
  std::uint32_t remote_ = 0;
  bool closed_ = false;

  // The sending side. Written with the queue pair's send lock; credited_ and finished_ only with the engine.
  std::uint64_t window_used_ = 0;                         // cells ever sent that count
  std::atomic<std::uint64_t> credited_{0};                // of them delivered
  std::array<std::uint64_t, kAnnouncedMax> announced_{};  // the queue pair's numbers of announced messages
  std::atomic<std::uint64_t> announced_count_{0};         // ever
  std::atomic<std::uint64_t> finished_{0};                // of them
  std::uint64_t granted_ = 0;                             // of them; with the engine
  std::uint64_t piece_offset_ = 0;                        // within the message that is crossing; with the engine

  // The receiving side, with the engine.
  std::deque<Parked> parked_;
  std::uint64_t arrived_cells_ = 0;
  std::uint64_t returned_cells_ = 0;
  std::uint32_t owed_cells_ = 0;
};

}  // namespace anydat::nic::soft::shm
