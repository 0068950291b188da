// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on event dispatchers and notification objects.
#include "api/handles.h"
#include "dapl/cno.h"
#include "dapl/evd.h"

namespace anydat::api {

using dapl::Cno;
using dapl::Evd;
using dapl::Ia;

DAT_RETURN evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS flags,
                      DAT_EVD_HANDLE* evd) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_evd_create", DAT_INVALID_HANDLE_IA);
  ANYDAT_OPTIONAL_OF(ia, Cno, cno, cno_handle, "dat_evd_create", DAT_INVALID_HANDLE_CNO);
  return Evd::create(*ia, min_qlen, cno, flags, evd);
}

DAT_RETURN evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_query", DAT_NO_SUBTYPE);
  return evd->query(mask, param);
}

DAT_RETURN evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_modify_cno", DAT_NO_SUBTYPE);
  ANYDAT_OPTIONAL_OF(&evd->ia(), Cno, cno, cno_handle, "dat_evd_modify_cno", DAT_INVALID_HANDLE_CNO);
  base::Guard guard(evd->ia().engine());
  return evd->modify_cno(cno);
}

DAT_RETURN evd_enable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_enable", DAT_NO_SUBTYPE);
  return evd->set_enabled(true);
}

DAT_RETURN evd_disable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_disable", DAT_NO_SUBTYPE);
  return evd->set_enabled(false);
}

DAT_RETURN evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                    DAT_COUNT* nmore) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_wait", DAT_NO_SUBTYPE);
  return evd->wait(timeout, threshold, event, nmore);
}

DAT_RETURN evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT min_qlen) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_resize", DAT_NO_SUBTYPE);
  return evd->resize(min_qlen);
}

DAT_RETURN evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT* event) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_post_se", DAT_NO_SUBTYPE);
  return evd->post_se(event);
}

DAT_RETURN evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_dequeue", DAT_NO_SUBTYPE);
  return evd->dequeue(event);
}

DAT_RETURN evd_free(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_free", DAT_NO_SUBTYPE);
  base::Guard guard(evd->ia().engine());
  return evd->free();
}

DAT_RETURN evd_set_unwaitable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_set_unwaitable", DAT_NO_SUBTYPE);
  return evd->set_waitable(false);
}

DAT_RETURN evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_clear_unwaitable", DAT_NO_SUBTYPE);
  return evd->set_waitable(true);
}

DAT_RETURN cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_cno_create", DAT_INVALID_HANDLE_IA);
  return Cno::create(*ia, agent, cno);
}

DAT_RETURN cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_modify_agent", DAT_INVALID_HANDLE_CNO);
  return cno->modify_agent(agent);
}

DAT_RETURN cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_query", DAT_INVALID_HANDLE_CNO);
  return cno->query(mask, param);
}

DAT_RETURN cno_free(DAT_CNO_HANDLE cno_handle) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_free", DAT_INVALID_HANDLE_CNO);
  // What an agent is given is the program's again afterwards, so none may be running. It may need the engine to get on,
  // and may close the instance.
  const std::shared_ptr<dapl::AgentThread> agents = cno->ia().agents();
  const std::uint64_t number = cno->number();
  {
    base::Guard guard(cno->ia().engine());
    if (const DAT_RETURN rc = cno->free(); rc != DAT_SUCCESS) return rc;
  }
  agents->finish(number);
  return DAT_SUCCESS;
}

DAT_RETURN cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_wait", DAT_INVALID_HANDLE_CNO);
  return cno->wait(timeout, evd);
}

}  // namespace anydat::api
