// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/host/fake_device.h"

#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace {

std::atomic<int> made{0};
std::mutex lock;
std::vector<int*> numbers;  // where objects have their descriptors
std::map<rdma_event_channel*, std::deque<rdma_cm_event>> arrived;

ibv_device the_device() {
  ibv_device device{};
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::strcpy(device.name, "fake0");
  std::strcpy(device.dev_name, "uverbs-fake0");
  return device;
}
ibv_device device = the_device();
ibv_device* list[] = {&device, nullptr};

// As calls of the kernel do. A descriptor that is no eventfd any more is another file's, which sees it.
int touch(int fd) {
  const std::uint64_t one = 1;
  return ::write(fd, &one, sizeof one) == sizeof one ? 0 : -1;
}
void open_into(int& fd) {
  fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const std::lock_guard guard(lock);
  numbers.push_back(&fd);
}
void close_in(int& fd) {
  {
    const std::lock_guard guard(lock);
    std::erase(numbers, &fd);
  }
  ::close(fd);
}
template <typename T>
T* make(T object = {}) {
  ++made;
  return new T(object);
}
template <typename T>
int unmake(T* object) {
  --made;
  delete object;
  return 0;
}

int poll_none(ibv_cq*, int, ibv_wc*) {
  return 0;
}
int notify(ibv_cq*, int) {
  return 0;
}
int post_receive(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) {
  return 0;
}
int post_shared(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) {
  return 0;
}
int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**) {
  return 0;
}

long in_place_of(long path) {
  static const char fakes[] = ANYDAT_FAKE_DEVICES;
  const bool devices = std::strcmp(reinterpret_cast<const char*>(path), "/sys/class/infiniband") == 0;
  return devices ? reinterpret_cast<long>(fakes) : path;
}

// librdmacm opens a device once more for itself.
ibv_context* context_of_ids() {
  static ibv_context context = [] {
    ibv_context made_once{};
    made_once.device = &device;
    return made_once;
  }();
  return &context;
}

constexpr int kMany = 1000;
std::atomic<int> shared_queues{kMany};

}  // namespace

namespace anydat::test::fake {

int objects() {
  return made;
}

std::vector<int> descriptors() {
  const std::lock_guard guard(lock);
  std::vector<int> result;
  for (const int* fd : numbers) result.push_back(*fd);
  return result;
}

WithoutSharedQueues::WithoutSharedQueues() {
  shared_queues = 0;
}

WithoutSharedQueues::~WithoutSharedQueues() {
  shared_queues = kMany;
}

}  // namespace anydat::test::fake

#pragma GCC visibility push(default)
extern "C" {

// Where libdat looks for devices there is a folder with one of that name. It opens folders by the system call itself
// (os/uncancelled.h).
long syscall(long number, ...) noexcept {
  static const auto kernel = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
  std::array<long, 6> arguments;
  va_list more;
  va_start(more, number);
  for (long& one : arguments) one = va_arg(more, long);
  va_end(more);
  if (number == SYS_openat) arguments[1] = in_place_of(arguments[1]);
  return kernel(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}
int ibv_fork_init() {
  return 0;
}
ibv_device** ibv_get_device_list(int* count) {
  if (count) *count = 1;
  return list;
}
void ibv_free_device_list(ibv_device**) {}
const char* ibv_get_device_name(ibv_device*) {
  return "fake0";
}
int ibv_get_device_index(ibv_device*) {
  return 1;
}
ibv_context* ibv_open_device(ibv_device*) {
  auto* const context = make<ibv_context>();
  context->device = &device;
  context->ops.poll_cq = poll_none;
  context->ops.req_notify_cq = notify;
  context->ops.post_recv = post_receive;
  context->ops.post_srq_recv = post_shared;
  context->ops.post_send = post_send;
  open_into(context->cmd_fd);
  open_into(context->async_fd);
  return context;
}
int ibv_close_device(ibv_context* context) {
  close_in(context->cmd_fd);
  close_in(context->async_fd);
  return unmake(context);
}
int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->max_mr_size = ~std::uint64_t{0};
  attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_pd = kMany;
  attributes->max_qp_wr = 4096;
  attributes->max_srq = shared_queues;
  attributes->max_srq_wr = shared_queues > 0 ? 4096 : 0;
  attributes->max_cqe = 8192;
  attributes->max_sge = attributes->max_sge_rd = 16;
  attributes->max_srq_sge = shared_queues > 0 ? 16 : 0;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = attributes->max_res_rd_atom = 16;
  attributes->phys_port_cnt = 2;
  attributes->node_guid = htobe64(0x0002'c903'0004'a5e0);
  return 0;
}
#undef ibv_query_port
int ibv_query_port(ibv_context*, std::uint8_t number, _compat_ibv_port_attr* attributes) {
  auto* const port = reinterpret_cast<ibv_port_attr*>(attributes);
  port->state = number == 2 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  port->active_mtu = IBV_MTU_4096;
  port->max_msg_sz = 1u << 31;
  return 0;
}
int ibv_get_async_event(ibv_context* context, ibv_async_event*) {
  std::uint64_t count = 0;
  (void)!::read(context->async_fd, &count, sizeof count);
  return -1;
}
void ibv_ack_async_event(ibv_async_event*) {}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  ibv_pd pd{};
  pd.context = context;
  return make(pd);
}
int ibv_dealloc_pd(ibv_pd* pd) {
  return unmake(pd);
}
#undef ibv_reg_mr
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int) {
  static std::atomic<std::uint32_t> keys{0x1000};
  ibv_mr mr{};
  mr.context = pd->context;
  mr.pd = pd;
  mr.addr = address;
  mr.length = length;
  mr.lkey = mr.rkey = ++keys;
  return touch(pd->context->cmd_fd) == 0 ? make(mr) : nullptr;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t, unsigned int access) {
  return ibv_reg_mr(pd, address, length, static_cast<int>(access));
}
int ibv_dereg_mr(ibv_mr* mr) {
  return touch(mr->context->cmd_fd) == 0 ? unmake(mr) : EBADF;
}
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = make<ibv_comp_channel>();
  channel->context = context;
  open_into(channel->fd);
  return channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close_in(channel->fd);
  return unmake(channel);
}
ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void*, ibv_comp_channel* channel, int) {
  auto* const cq = make<ibv_cq>();
  cq->context = context;
  cq->channel = channel;
  cq->cqe = cqe;
  return cq;
}
int ibv_resize_cq(ibv_cq* cq, int cqe) {
  cq->cqe = cqe;
  return 0;
}
int ibv_destroy_cq(ibv_cq* cq) {
  return touch(cq->context->cmd_fd) == 0 ? unmake(cq) : EBADF;
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq**, void**) {
  std::uint64_t count = 0;
  (void)!::read(channel->fd, &count, sizeof count);
  return -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned int) {}
ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  auto* const srq = make<ibv_srq>();
  srq->context = pd->context;
  srq->srq_context = attributes->srq_context;
  return srq;
}
int ibv_modify_srq(ibv_srq*, ibv_srq_attr*, int) {
  return 0;
}
int ibv_query_srq(ibv_srq*, ibv_srq_attr*) {
  return EOPNOTSUPP;
}
int ibv_destroy_srq(ibv_srq* srq) {
  return touch(srq->context->cmd_fd) == 0 ? unmake(srq) : EBADF;
}
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  auto* const qp = make<ibv_qp>();
  qp->context = pd->context;
  qp->qp_context = attributes->qp_context;
  return qp;
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) {
  return 0;
}
int ibv_destroy_qp(ibv_qp* qp) {
  return touch(qp->context->cmd_fd) == 0 ? unmake(qp) : EBADF;
}

rdma_event_channel* rdma_create_event_channel() {
  auto* const channel = make<rdma_event_channel>();
  open_into(channel->fd);
  return channel;
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  close_in(channel->fd);
  unmake(channel);
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space) {
  if (touch(channel->fd) != 0) return -1;
  rdma_cm_id one{};
  one.channel = channel;
  one.context = context;
  *id = make(one);
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  if (touch(id->channel->fd) != 0) return -1;
  const std::lock_guard guard(lock);
  std::erase_if(arrived[id->channel], [&](const rdma_cm_event& event) { return event.id == id; });
  return unmake(id);
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  if (touch(id->channel->fd) != 0) return -1;
  id->verbs = context_of_ids();
  std::memcpy(&id->route.addr.src_addr, address,
              address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  static std::atomic<std::uint16_t> ports{40000};
  auto* const own = reinterpret_cast<sockaddr_in*>(&id->route.addr.src_addr);  // the port is in one place in both
  if (own->sin_port == 0) own->sin_port = htons(++ports);
  return 0;
}
int rdma_listen(rdma_cm_id* id, int) {
  return touch(id->channel->fd);
}
// No host is there.
int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr*, int) {
  rdma_cm_event event{};
  event.id = id;
  event.event = RDMA_CM_EVENT_ADDR_ERROR;
  event.status = -EHOSTUNREACH;
  {
    const std::lock_guard guard(lock);
    arrived[id->channel].push_back(event);
  }
  return touch(id->channel->fd);
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const std::lock_guard guard(lock);
  std::deque<rdma_cm_event>& waiting = arrived[channel];
  if (waiting.empty()) {
    std::uint64_t count = 0;
    (void)!::read(channel->fd, &count, sizeof count);
    errno = EAGAIN;
    return -1;
  }
  *event = new rdma_cm_event(waiting.front());
  waiting.pop_front();
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return 0;
}
__be16 rdma_get_src_port(rdma_cm_id* id) {
  return reinterpret_cast<sockaddr_in*>(&id->route.addr.src_addr)->sin_port;
}
// What is never called, as no host is reached.
int rdma_resolve_route(rdma_cm_id*, int) {
  return -1;
}
int rdma_connect(rdma_cm_id*, rdma_conn_param*) {
  return -1;
}
int rdma_accept(rdma_cm_id*, rdma_conn_param*) {
  return -1;
}
int rdma_establish(rdma_cm_id*) {
  return -1;
}
int rdma_reject(rdma_cm_id*, const void*, std::uint8_t) {
  return -1;
}
int rdma_disconnect(rdma_cm_id*) {
  return -1;
}
int rdma_notify(rdma_cm_id*, ibv_event_type) {
  return -1;
}
int rdma_init_qp_attr(rdma_cm_id*, ibv_qp_attr*, int*) {
  return -1;
}

}  // extern "C"
#pragma GCC visibility pop
