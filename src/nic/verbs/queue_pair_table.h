// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>
#include <vector>

namespace anydat::nic::verbs {

class VerbsQueuePair;

// The queue pairs of an adapter: by a tag, which their own work carries, and by the device's number, by which the
// receives of a shared queue are told apart. With the engine held.
class QueuePairTable {
 public:
  std::uint32_t add(VerbsQueuePair& queue_pair) {  // answers with its tag
    auto index = static_cast<std::uint32_t>(by_tag_.size());
    if (free_.empty()) {
      if (index > kIndexMask) throw std::bad_alloc();
      free_.reserve(by_tag_.size() + 1);  // first, or an index would be neither used nor free if there is no memory
      by_tag_.push_back({nullptr, index});
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Tagged& entry = by_tag_[index];
    entry.queue_pair = &queue_pair;
    return entry.tag;
  }
  void remove(std::uint32_t tag) {
    Tagged& entry = by_tag_[tag & kIndexMask];
    entry.queue_pair = nullptr;
    entry.tag = (entry.tag + kIndexMask + 1) & kTagMask;
    free_.push_back(tag & kIndexMask);
  }
  VerbsQueuePair* find(std::uint32_t tag) const {  // or null
    const std::size_t index = tag & kIndexMask;
    return index < by_tag_.size() && by_tag_[index].tag == tag ? by_tag_[index].queue_pair : nullptr;
  }
  // Calls f(VerbsQueuePair&) for each; f may add and remove any.
  template <typename F>
  void for_each(F&& f) {
    for (std::size_t i = 0; i < by_tag_.size(); ++i) {
      if (VerbsQueuePair* const queue_pair = by_tag_[i].queue_pair) f(*queue_pair);
    }
  }

  void note_number(std::uint32_t number, VerbsQueuePair& queue_pair) { by_number_[number] = &queue_pair; }
  void forget_number(std::uint32_t number, const VerbsQueuePair& queue_pair) {
    const auto found = by_number_.find(number);
    if (found != by_number_.end() && found->second == &queue_pair) by_number_.erase(found);
  }
  VerbsQueuePair* numbered(std::uint32_t number) const {  // or null
    const auto found = by_number_.find(number);
    return found != by_number_.end() ? found->second : nullptr;
  }

 private:
  // A tag is an index and, above it, how often the index has been used.
  static constexpr std::uint32_t kIndexMask = (1u << 20) - 1;
  static constexpr std::uint32_t kTagMask = (1u << 30) - 1;
  struct Tagged {
    VerbsQueuePair* queue_pair = nullptr;
    std::uint32_t tag = 0;
  };
  std::vector<Tagged> by_tag_;  // at the low bits of the tag
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint32_t, VerbsQueuePair*> by_number_;
};

}  // namespace anydat::nic::verbs
