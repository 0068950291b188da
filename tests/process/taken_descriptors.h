// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace anydat::test {

// What a program does that becomes a daemon in the old way: it closes all descriptors but those that it knows,
// those of libraries, too, and then opens others.
class TakenDescriptors {
 public:
  // But for those up to `last_known`.
  explicit TakenDescriptors(int last_known) : last_known_(last_known) {}

  // "none": 200 files, by the lowest numbers. Else each number that was open is a file's ("files"), an eventfd's
  // ("counters"), a socket's that something has come for ("sockets"), or an epoll set's in which something is ready
  // ("sets").
  void take(const std::string& kind) {
    const std::vector<int> before = open_numbers();
    for (const int number : before) ::close(number);
    if (kind == "none") {
      for (int i = 0; i < 200; ++i) remember(make("files"));
      return;
    }
    // The library looks at its descriptors once in a millisecond, which is less than a program takes to open so many
    // files that it gets their numbers. This one asks for them by name, and so waits.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int first = make(kind);
    for (const int number : before) {
      const int fd = number == first ? first : make(kind);
      if (fd != number && (::dup2(fd, number) != number || ::close(fd) != 0)) throw std::runtime_error("dup2");
      remember(number);
    }
  }

  std::string untouched() const {
    std::array<std::byte, kBytes> text{};
    for (const Taken& taken : all_) {
      struct stat now {};
      if (::fstat(taken.fd, &now) != 0) return fmt::format("{} has been closed", taken.fd);
      if (now.st_ino != taken.status.st_ino) return fmt::format("{} is another file", taken.fd);
      if (S_ISREG(now.st_mode)) {
        if (::lseek(taken.fd, 0, SEEK_CUR) != 0) return fmt::format("{} has been read or written", taken.fd);
        if (::pread(taken.fd, text.data(), kBytes, 0) != kBytes || text != pattern()) {
          return fmt::format("{} has been written", taken.fd);
        }
      } else if (S_ISSOCK(now.st_mode)) {
        if (::recv(taken.fd, text.data(), kBytes, MSG_DONTWAIT | MSG_PEEK) != 1) {
          return fmt::format("{} has been read", taken.fd);
        }
        if (::recv(taken.other, text.data(), kBytes, MSG_DONTWAIT) >= 0 || errno != EAGAIN) {
          return fmt::format("something has been sent by {}, or its end", taken.fd);
        }
      } else if (!taken.watched.empty()) {
        if (watched_by(taken.fd) != taken.watched) return fmt::format("{} watches something else", taken.fd);
      } else {
        std::uint64_t count = 0;
        if (::read(taken.fd, &count, sizeof count) != sizeof count || count != kCount) {
          return fmt::format("{} has been rung or read", taken.fd);
        }
        if (::write(taken.fd, &count, sizeof count) != sizeof count) return "write";
      }
    }
    return "yes";
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::uint64_t kCount = 7;
  struct Taken {
    int fd;
    int other;  // the socket at the other end
    struct stat status;
    std::string watched;  // by the set, in the kernel's words
  };

  static std::array<std::byte, kBytes> pattern() {
    std::array<std::byte, kBytes> text;
    text.fill(std::byte{0x77});
    return text;
  }
  std::vector<int> open_numbers() const {
    std::vector<int> numbers;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int number = std::stoi(entry.path().filename().string());
      if (number > last_known_) numbers.push_back(number);
    }
    // That of the folder is closed by now.
    std::erase_if(numbers, [](int number) { return ::fcntl(number, F_GETFD) < 0; });
    return numbers;
  }
  // Empty if it is no set.
  static std::string watched_by(int fd) {
    std::ifstream info(fmt::format("/proc/self/fdinfo/{}", fd));
    std::string all;
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("tfd:")) all += line + "\n";
    }
    return all;
  }
  int make(const std::string& kind) {
    if (kind == "counters") return ::eventfd(kCount, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kind == "sockets") {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
        throw std::runtime_error("socketpair");
      if (::send(pair[1], "", 1, MSG_NOSIGNAL) != 1) throw std::runtime_error("send");
      other_ = ::fcntl(pair[1], F_DUPFD_CLOEXEC, 900);
      ::close(pair[1]);
      return pair[0];
    }
    if (kind == "sets") {
      const int set = ::epoll_create1(EPOLL_CLOEXEC);
      if (counter_ < 0) counter_ = ::fcntl(make("counters"), F_DUPFD_CLOEXEC, 900);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = counter_;
      if (::epoll_ctl(set, EPOLL_CTL_ADD, counter_, &event) != 0) throw std::runtime_error("epoll_ctl");
      return set;
    }
    const int fd = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const auto text = pattern();
    if (fd < 0 || ::pwrite(fd, text.data(), kBytes, 0) != kBytes) throw std::runtime_error("no file");
    return fd;
  }
  void remember(int fd) {
    Taken taken{fd, other_, {}, watched_by(fd)};
    if (::fstat(fd, &taken.status) != 0) throw std::runtime_error("fstat");
    all_.push_back(taken);
  }

  const int last_known_;
  std::vector<Taken> all_;
  int other_ = -1;
  int counter_ = -1;  // what is ready in each set
};

}  // namespace anydat::test
