// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/establishment.h"

#include <new>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

namespace {

// Between two attempts (ConnectParameters::patience).
constexpr os::Nanoseconds kConnectAgain = 2'000'000;

}  // namespace

// What has been asked for by one wire, to be asked for by another.
struct Establishment::OtherWire {
  OtherWire(Establishment& establishment, const ConnectParameters& asked)
      : private_data(asked.private_data.begin(), asked.private_data.end()),
        parameters(asked),
        task([&establishment] { establishment.connect_by_other_wire(); }) {
    parameters.private_data = private_data;
  }

  const std::vector<std::byte> private_data;
  ConnectParameters parameters;
  Task task;
};

Establishment::Establishment(SoftQueuePair& queue_pair, SoftAdapter& adapter, QueuePairEvents& events)
    : queue_pair_(queue_pair),
      adapter_(adapter),
      events_(events),
      again_timer_([this] { connect_again(); }),
      deadline_timer_([this] { timed_out(); }) {}

Establishment::~Establishment() = default;

// ---- active side

Status Establishment::connect(const ConnectParameters& parameters) {
  // What may find no memory comes before anything has begun.
  if (!queue_pair_.sends().make_room()) return Status::no_memory;
  attempt_.reset();
  other_wire_.reset();
  if (parameters.patience > 0) {
    attempt_ = std::make_unique<Attempt>(Attempt{parameters,
                                                 {parameters.private_data.begin(), parameters.private_data.end()},
                                                 std::string(parameters.adapter),
                                                 os::now_ns() + parameters.patience});
    Attempt& attempt = *attempt_;
    attempt.parameters.private_data = attempt.private_data;
    attempt.parameters.adapter = attempt.adapter;
  }
  std::unique_ptr<Stream> stream;
  const Status status = adapter_.open_stream(queue_pair_, parameters, stream);
  if (status != Status::ok) return status;
  queue_pair_.connection().set_remote(parameters.remote, parameters.qual);
  queue_pair_.connection().begin(std::move(stream), ConnectionState::connecting);
  if (parameters.deadline != os::kForever) adapter_.engine().set_timer(deadline_timer_, parameters.deadline);
  return Status::ok;
}

void Establishment::connect_again() {
  std::unique_ptr<Stream> stream;
  Status status = Status::no_memory;
  try {
    status = adapter_.open_stream(queue_pair_, attempt_->parameters, stream);
  } catch (const std::bad_alloc&) {
    // As without a descriptor.
  }
  if (status == Status::ok) {
    queue_pair_.connection().change_stream(std::move(stream));
  } else {
    queue_pair_.connection().end({Ending::Report::connect_failed, ConnectFailure::refused});
  }
}

void Establishment::try_another_wire(const ConnectParameters& parameters) {
  try {
    other_wire_ = std::make_unique<OtherWire>(*this, parameters);
  } catch (const std::bad_alloc&) {
    return failed(ConnectFailure::refused);  // as without a descriptor
  }
  adapter_.engine().schedule(other_wire_->task);
}

// The deadline keeps running.
void Establishment::connect_by_other_wire() {
  std::unique_ptr<Stream> stream;
  Status status = Status::no_memory;
  try {
    status = adapter_.open_tcp_stream(queue_pair_, other_wire_->parameters, stream);
  } catch (const std::bad_alloc&) {
    // As without a descriptor.
  }
  if (status != Status::ok) {
    failed(ConnectFailure::refused);
    return;
  }
  queue_pair_.connection().change_stream(std::move(stream));
}

// A rejection whose private data find no memory is one without.
void Establishment::failed(ConnectFailure why, std::span<const std::byte> private_data) {
  if (why == ConnectFailure::refused && attempt_ && os::now_ns() < attempt_->until) {
    adapter_.engine().set_timer(again_timer_, os::now_ns() + kConnectAgain);
    return;
  }
  try {
    rejection_.assign(private_data.begin(), private_data.end());
  } catch (const std::bad_alloc&) {
    rejection_.clear();
  }
  queue_pair_.connection().end({Ending::Report::connect_failed, why});
}

// ---- passive side

void Establishment::accept(std::unique_ptr<Stream> stream, ConnectionNames names) {
  queue_pair_.connection().set_names(std::move(names));
  queue_pair_.connection().begin(std::move(stream), ConnectionState::accepting);
}

void Establishment::expect_by(os::Nanoseconds deadline) {
  adapter_.engine().set_timer(deadline_timer_, deadline);
}

void Establishment::accept_failed() {
  queue_pair_.connection().end({Ending::Report::accept_failed});
}

// ---- either side

void Establishment::done(std::span<const std::byte> private_data) {
  stop();
  other_wire_.reset();
  queue_pair_.receives().arriving().connection_begins();
  queue_pair_.sends().connection_begins();
  events_.on_established(private_data);
  queue_pair_.receives().watermarks().test();  // EP-WM-11
}

void Establishment::timed_out() {
  const ConnectionState state = queue_pair_.state();
  if (state != ConnectionState::connecting && state != ConnectionState::accepting) return;
  queue_pair_.connection().stream()->close(CloseReason::abrupt);
  if (queue_pair_.state() == ConnectionState::connecting) {
    failed(ConnectFailure::timed_out);
  } else {
    accept_failed();
  }
}

void Establishment::stop() {
  adapter_.engine().cancel_timer(deadline_timer_);
  adapter_.engine().cancel_timer(again_timer_);
  if (other_wire_) adapter_.engine().cancel_task(other_wire_->task);
}

}  // namespace anydat::nic::soft
