// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on event dispatchers and notification objects.
#include "dapl/cno.h"
#include "dapl/evd.h"
#include "dapl/instances.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/event.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS flags,
                       DAT_EVD_HANDLE* evd) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_evd_create", handle_ia);
  ANYDAT_OPTIONAL_OF(ia, Cno, cno, cno_handle, "dat_evd_create", handle_cno);
  return dapl::Evd::create(*ia, min_qlen, cno, flags, evd);
}

dapl::Error evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_query", none);
  return answer("dat_evd_query", evd->ia(), mask, DAT_EVD_FIELD_ALL, param, [&] { return evd->query(); });
}

dapl::Error evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_modify_cno", none);
  ANYDAT_OPTIONAL_OF(&evd->ia(), Cno, cno, cno_handle, "dat_evd_modify_cno", handle_cno);
  ANYDAT_HOLD(evd, evd_handle, "dat_evd_modify_cno", none);
  if (cno && !cno->alive()) {
    return bad_handle("dat_evd_modify_cno", "cno_handle", cno_handle, dapl::Detail::handle_cno);
  }
  evd->modify_cno(cno);
  return dapl::kSuccess;
}

dapl::Error evd_enable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_enable", none);
  evd->set_enabled(true);
  return dapl::kSuccess;
}

dapl::Error evd_disable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_disable", none);
  evd->set_enabled(false);
  return dapl::kSuccess;
}

dapl::Error evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                     DAT_COUNT* nmore) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_wait", none);
  if (!event) return dapl::fail(at(4), "dat_evd_wait: event is NULL");
  dapl::Event taken;
  const dapl::Error error = evd->wait(timeout, threshold, taken, nmore);
  if (!error) fill_event(taken, evd_handle, *event);
  return error;
}

dapl::Error evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT min_qlen) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_resize", none);
  return evd->resize(min_qlen);
}

dapl::Error evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT* event) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_post_se", none);
  if (!event) return dapl::fail(at(2), "dat_evd_post_se: event is NULL");
  if (event->event_number != DAT_SOFTWARE_EVENT) {
    return dapl::fail(at(2), "dat_evd_post_se: event number {:#x} is not {:#x}",
                      static_cast<unsigned>(event->event_number), static_cast<unsigned>(DAT_SOFTWARE_EVENT));
  }
  return evd->post_software(event->event_data.software_event_data.pointer);
}

dapl::Error evd_free(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_free", none);
  os::Guard instances(dapl::Instances::get());
  ANYDAT_HOLD(evd, evd_handle, "dat_evd_free", none);
  return evd->free();
}

dapl::Error evd_set_unwaitable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_set_unwaitable", none);
  evd->set_waitable(false);
  return dapl::kSuccess;
}

dapl::Error evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_clear_unwaitable", none);
  evd->set_waitable(true);
  return dapl::kSuccess;
}

dapl::Error cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_cno_create", handle_ia);
  return dapl::Cno::create(*ia, from_dat(agent), cno);
}

dapl::Error cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_modify_agent", handle_cno);
  return cno->modify_agent(from_dat(agent));
}

dapl::Error cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_query", handle_cno);
  return answer("dat_cno_query", cno->ia(), mask, kCnoFields, param, [&] { return cno->query(); });
}

dapl::Error cno_free(DAT_CNO_HANDLE cno_handle) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_free", handle_cno);
  // What an agent is given is the program's again afterwards, so none may be running. It may need the engine to get on,
  // and may close the instance.
  const std::shared_ptr<dapl::AgentThread> agents = cno->ia().agents();
  const std::uint64_t number = cno->number();
  {
    ANYDAT_HOLD(cno, cno_handle, "dat_cno_free", handle_cno);
    if (const dapl::Error error = cno->free()) return error;
  }
  agents->finish(number);
  return dapl::kSuccess;
}

dapl::Error cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_wait", handle_cno);
  return cno->wait(timeout, evd);
}

}  // namespace anydat::face
