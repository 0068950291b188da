// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cassert>
#include <cstddef>

namespace anydat::base {

// What an object needs to be in one list of its kind at a time.
template <typename T>
class ListLinks {
 public:
  ListLinks() = default;
  ListLinks(const ListLinks&) = delete;
  ListLinks& operator=(const ListLinks&) = delete;
  bool listed() const { return listed_; }

 private:
  template <typename U, ListLinks<U> U::*>
  friend class List;
  T* previous_ = nullptr;
  T* next_ = nullptr;
  bool listed_ = false;
};

// A first-in, first-out list of objects that are owned elsewhere. Nothing is allocated, so adding cannot fail, and an
// object is taken out without a search. Not thread safe.
template <typename T, ListLinks<T> T::*links>
class List {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  T* front() const { return first_; }
  T* after(const T& item) const { return (item.*links).next_; }

  // Requires: it is in no list.
  void push_back(T& item) {
    ListLinks<T>& its = item.*links;
    assert(!its.listed_);
    its.previous_ = last_;
    its.next_ = nullptr;
    its.listed_ = true;
    (last_ ? (last_->*links).next_ : first_) = &item;
    last_ = &item;
    ++size_;
  }
  // An object that is in no list stays so. Requires: it is in no other list.
  void remove(T& item) {
    ListLinks<T>& its = item.*links;
    if (!its.listed_) return;
    (its.previous_ ? (its.previous_->*links).next_ : first_) = its.next_;
    (its.next_ ? (its.next_->*links).previous_ : last_) = its.previous_;
    its.previous_ = its.next_ = nullptr;
    its.listed_ = false;
    --size_;
  }
  // The oldest, taken out; null if there is none.
  T* pop_front() {
    T* const item = first_;
    if (item) remove(*item);
    return item;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace anydat::base
