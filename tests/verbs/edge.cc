// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/edge.h"

#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>

namespace {

using anydat::test::edge::Call;
using anydat::test::edge::QueuePair;

// The library's own function of that name, as programs are linked with it today.
template <typename Function>
Function* real(const char* name, const char* version = "IBVERBS_1.1", const char* file = "libibverbs.so.1") {
  void* const library = dlopen(file, RTLD_NOW);
  void* const found = library ? dlvsym(library, name, version) : nullptr;
  if (!found) std::abort();
  return reinterpret_cast<Function*>(found);
}

// Beside the descriptor of a device's events there is one that is readable for events of ours, too.
struct Device {
  int own_fd;
  int both_fd;
  int bell_fd;
  std::deque<ibv_async_event> raised;
};

int system_epoll_ctl(int epoll, int operation, int fd, epoll_event* interest) {
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, interest));
}

std::mutex lock;
std::map<ibv_context*, Device> devices;
std::vector<QueuePair> made;
thread_local bool last_was_raised = false;
bool sizes_are_fixed = false;

struct Door {
  bool closed = false;
  int waiting = 0;
  int passes = 0;  // that may pass though it is closed
};
Door doors[4];
std::condition_variable doors_changed;

Door& door(Call call) {
  return doors[static_cast<int>(call)];
}

class Waits {
 public:
  explicit Waits(Door& at) : at_(at) { ++at_.waiting; }
  ~Waits() { --at_.waiting; }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

 private:
  Door& at_;
};

// A thread that waits may be cancelled.
void pass(Call call) {
  std::unique_lock held(lock);
  const Waits waits(door(call));
  doors_changed.wait(held, [&] { return !door(call).closed || door(call).passes > 0; });
  if (door(call).closed) --door(call).passes;
}

}  // namespace

namespace anydat::test::edge {

std::vector<QueuePair> queue_pairs() {
  const std::lock_guard guard(lock);
  return made;
}

Gate::Gate(Call call) : call_(call) {
  const std::lock_guard guard(lock);
  door(call).closed = true;
}

Gate::~Gate() {
  const std::lock_guard guard(lock);
  door(call_).closed = false;
  door(call_).passes = 0;
  doors_changed.notify_all();
}

void Gate::let_one_pass() {
  const std::lock_guard guard(lock);
  ++door(call_).passes;
  doors_changed.notify_all();
}

bool Gate::reached() const {
  const std::lock_guard guard(lock);
  return door(call_).waiting > 0;
}

FixedSizes::FixedSizes() {
  const std::lock_guard guard(lock);
  sizes_are_fixed = true;
}

FixedSizes::~FixedSizes() {
  const std::lock_guard guard(lock);
  sizes_are_fixed = false;
}

void raise(ibv_context* device, const ibv_async_event& event) {
  const std::lock_guard guard(lock);
  Device& known = devices.at(device);
  known.raised.push_back(event);
  const std::uint64_t one = 1;
  if (write(known.bell_fd, &one, sizeof one) != sizeof one) std::abort();
}

}  // namespace anydat::test::edge

#pragma GCC visibility push(default)
extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
  ibv_context* const context = real<decltype(ibv_open_device)>("ibv_open_device")(device);
  if (!context) return nullptr;
  const Device known{context->async_fd, epoll_create1(EPOLL_CLOEXEC), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), {}};
  epoll_event interest{};
  interest.events = EPOLLIN;
  for (const int fd : {known.own_fd, known.bell_fd}) {
    if (system_epoll_ctl(known.both_fd, EPOLL_CTL_ADD, fd, &interest) != 0) std::abort();
  }
  const std::lock_guard guard(lock);
  devices.emplace(context, known);
  return context;
}

int ibv_close_device(ibv_context* context) {
  {
    const std::lock_guard guard(lock);
    const auto known = devices.find(context);
    if (known != devices.end()) {
      close(known->second.both_fd);
      close(known->second.bell_fd);
      devices.erase(known);
    }
  }
  return real<decltype(ibv_close_device)>("ibv_close_device")(context);
}

// A caller that watches the device's descriptor watches both.
int epoll_ctl(int epoll, int operation, int fd, epoll_event* interest) {
  {
    const std::lock_guard guard(lock);
    for (const auto& [context, known] : devices) {
      if (context->async_fd == fd) fd = known.both_fd;
    }
  }
  return system_epoll_ctl(epoll, operation, fd, interest);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  const std::lock_guard guard(lock);
  const auto found = devices.find(context);
  last_was_raised = found != devices.end() && !found->second.raised.empty();
  if (last_was_raised) {
    Device& known = found->second;
    *event = known.raised.front();
    known.raised.pop_front();
    std::uint64_t count = 0;
    if (known.raised.empty() && read(known.bell_fd, &count, sizeof count) < 0) std::abort();
    return 0;
  }
  return real<decltype(ibv_get_async_event)>("ibv_get_async_event")(context, event);
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (!last_was_raised) real<decltype(ibv_ack_async_event)>("ibv_ack_async_event")(event);
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp* const qp = real<decltype(ibv_create_qp)>("ibv_create_qp")(pd, attributes);
  const std::lock_guard guard(lock);
  if (qp) made.push_back({qp, pd->context, attributes->send_cq, attributes->recv_cq, attributes->srq});
  return qp;
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  {
    const std::lock_guard guard(lock);
    if (sizes_are_fixed && (mask & IBV_SRQ_MAX_WR) != 0) return EINVAL;
  }
  return real<decltype(ibv_modify_srq)>("ibv_modify_srq")(srq, attributes, mask);
}

int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters) {
  const int status = real<decltype(rdma_connect)>("rdma_connect", "RDMACM_1.0", "librdmacm.so.1")(id, parameters);
  const int why = errno;
  pass(Call::connecting);
  errno = why;
  return status;
}

#undef ibv_reg_mr
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  pass(Call::registering);
  return real<ibv_mr*(ibv_pd*, void*, std::size_t, int)>("ibv_reg_mr")(pd, address, length, access);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned int access) {
  pass(Call::registering);
  return real<decltype(ibv_reg_mr_iova2)>("ibv_reg_mr_iova2", "IBVERBS_1.8")(pd, address, length, iova, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
  pass(Call::deregistering);
  return real<decltype(ibv_dereg_mr)>("ibv_dereg_mr")(mr);
}

int ibv_destroy_qp(ibv_qp* qp) {
  pass(Call::destroying);
  {
    const std::lock_guard guard(lock);
    std::erase_if(made, [&](const QueuePair& one) { return one.qp == qp; });
  }
  return real<decltype(ibv_destroy_qp)>("ibv_destroy_qp")(qp);
}

}  // extern "C"
#pragma GCC visibility pop
