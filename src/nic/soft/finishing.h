// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

namespace anydat::nic::soft {

// Owns objects that find out by themselves, in the middle of a call, that they are no longer needed: they do not count
// from then on, and go with the next sweep(), when no call of them can be under way. Not thread safe.
template <typename T>
class Finishing {
 public:
  using List = std::list<std::unique_ptr<T>>;

  T& add(std::unique_ptr<T> object) {
    live_.push_back(std::move(object));
    return *live_.back();
  }
  void drop_newest() { live_.pop_back(); }
  // False if it has finished before.
  bool finished(const T& object) {
    const auto found = std::find_if(live_.begin(), live_.end(), [&](auto& entry) { return entry.get() == &object; });
    if (found == live_.end()) return false;
    over_.splice(over_.end(), live_, found);
    return true;
  }
  template <typename Predicate>
  void erase_if(Predicate&& predicate) {
    std::erase_if(live_, [&](auto& entry) { return predicate(*entry); });
  }
  void sweep() { over_.clear(); }
  void clear() {
    live_.clear();
    over_.clear();
  }

  std::size_t size() const { return live_.size(); }
  typename List::const_iterator begin() const { return live_.begin(); }
  typename List::const_iterator end() const { return live_.end(); }

 private:
  List live_;
  List over_;
};

}  // namespace anydat::nic::soft
