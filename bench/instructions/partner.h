// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "instructions/side.h"

namespace counting {

// The side that is not counted: it polls at full speed, is the target of everything, and sends when it is told to.
class Partner {
 public:
  explicit Partner(Page& page);
  [[noreturn]] void run();

 private:
  static constexpr int kRemote = DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;

  void accept(bool on_srq);
  void serve(Side& side);
  void obey();

  Page& page_;
  tools::Adapter adapter_;
  tools::Evd requests_;
  tools::Region mapped_, heap_;
  std::vector<std::unique_ptr<Side>> sides_;
};

}  // namespace counting
