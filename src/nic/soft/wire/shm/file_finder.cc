// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/file_finder.h"

#include <new>

#include "nic/engine.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"
#include "os/memory_file.h"
#include "os/memory_map.h"
#include "os/own_files.h"
#include "os/thread_signals.h"

namespace anydat::nic::soft::shm {

namespace {

std::optional<ProgramFile> look_up(std::uint64_t address, std::uint64_t length) {
  const auto range = os::shared_file_of(address, length);
  if (!range) return std::nullopt;
  const int descriptor = os::descriptor_of(range->device, range->inode);
  if (descriptor < 0 || !os::cannot_shrink_below(descriptor, range->offset + length)) return std::nullopt;
  return ProgramFile{descriptor, range->device, range->inode, range->offset};
}

}  // namespace

FileFinder::~FileFinder() {
  if (thread_.joinable()) thread_.join();
}

void FileFinder::close() {
  closed_ = true;
  answers_.clear();
  os::Guard guard(lock_);
  jobs_.clear();
}

void FileFinder::find(std::uint32_t key, const Region& region, const std::shared_ptr<Link>& link) {
  if (closed_) return;
  const auto place = answers_.find(key);
  if (place != answers_.end() && place->second.known) {
    if (!place->second.file) return;
    if (link->mappings().show_file(key, *place->second.file)) return;
    answers_.erase(place);  // the program has closed that descriptor meanwhile, and may have others
  }
  Answer& answer = answers_[key];
  answer.askers.push_back(link);
  if (answer.askers.size() > 1) return;
  try {
    submit({key, region.address, region.length});
  } catch (const std::bad_alloc&) {
    answers_.erase(key);  // the peer does without
  }
}

void FileFinder::submit(const Job& job) {
  {
    os::Guard guard(lock_);
    jobs_.push_back(job);
    if (works_) return;
    works_ = true;
  }
  if (thread_.joinable()) thread_.join();  // it has found nothing more to do, and takes no lock any longer
  const os::SignalsOfOurThreads signals;
  try {
    if (thread_.start([this] { work(); })) return;
  } catch (const std::bad_alloc&) {
    // As without room for a thread.
  }
  os::Guard guard(lock_);
  jobs_.clear();
  works_ = false;
  throw std::bad_alloc();
}

void FileFinder::work() {
  for (;;) {
    Job job;
    {
      os::Guard guard(lock_);
      if (jobs_.empty()) {
        works_ = false;
        return;
      }
      job = jobs_.front();
      jobs_.pop_front();
    }
    const std::optional<ProgramFile> file = look_up(job.address, job.length);
    os::Guard guard(fabric_.engine());
    found(job, file);
  }
}

void FileFinder::found(const Job& job, const std::optional<ProgramFile>& file) {
  const auto place = answers_.find(job.key);
  if (closed_ || place == answers_.end() || place->second.known) return;  // the region has gone
  Answer& answer = place->second;
  answer.known = true;
  answer.file = file;
  std::vector<std::weak_ptr<Link>> askers;
  askers.swap(answer.askers);
  for (const auto& asker : askers) {
    const std::shared_ptr<Link> link = file ? asker.lock() : nullptr;
    if (link && !link->dead()) link->mappings().show_file(job.key, *file);
  }
}

}  // namespace anydat::nic::soft::shm
