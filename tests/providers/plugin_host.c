/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that uses libdat as the plugins of Open MPI do: it is loaded when a transport is chosen, and unloaded at
 * the end, although the transport's adapter could not be closed and is still open. Then a peer connects to the
 * adapter's service point, so that its thread has something to do.
 *
 *   plugin_host LIBDAT
 */
#include <arpa/inet.h>
#include <dat/udat.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static void check(int so, const char* condition, int line) {
  if (so) return;
  fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, condition);
  exit(1);
}
#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

/* ISO C has no cast from an object's address to a function's. */
static void find(void* library, const char* name, void* function) {
  void* const symbol = dlsym(library, name);
  CHECK(symbol != NULL);
  memcpy(function, &symbol, sizeof symbol);
}

static DAT_RETURN (*ia_openv)(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*, DAT_UINT32, DAT_UINT32,
                              DAT_BOOLEAN);
static DAT_RETURN (*evd_create)(DAT_IA_HANDLE, DAT_COUNT, DAT_CNO_HANDLE, DAT_EVD_FLAGS, DAT_EVD_HANDLE*);
static DAT_RETURN (*psp_create_any)(DAT_IA_HANDLE, DAT_CONN_QUAL*, DAT_EVD_HANDLE, DAT_PSP_FLAGS, DAT_PSP_HANDLE*);
static DAT_RETURN (*ia_close)(DAT_IA_HANDLE, DAT_CLOSE_FLAGS);

/* Says what is no greeting of iWARP's to the service point, whose adapter hangs up. */
static void disturb(DAT_CONN_QUAL qualifier) {
  struct sockaddr_in to;
  memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons((unsigned short)qualifier);
  char nonsense[256];
  memset(nonsense, 'x', sizeof nonsense);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  CHECK(connect(fd, (struct sockaddr*)&to, sizeof to) == 0);
  CHECK(send(fd, nonsense, sizeof nonsense, MSG_NOSIGNAL) == sizeof nonsense);
  struct pollfd answer = {fd, POLLIN, 0};
  CHECK(poll(&answer, 1, PATIENCE_MS) == 1);
  close(fd);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  find(library, "dat_ia_openv", &ia_openv);
  find(library, "dat_evd_create", &evd_create);
  find(library, "dat_psp_create_any", &psp_create_any);
  find(library, "dat_ia_close", &ia_close);

  char name[] = "soft-lo";
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, requests = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_CONN_QUAL qualifier = 0;
  CHECK(ia_openv(name, 8, &async_evd, &ia, 1, 2, DAT_TRUE) == DAT_SUCCESS);
  CHECK(evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests) == DAT_SUCCESS);
  CHECK(psp_create_any(ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &psp) == DAT_SUCCESS);
  CHECK(DAT_GET_TYPE(ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)) == DAT_INVALID_STATE);

  CHECK(dlclose(library) == 0);
  disturb(qualifier);

  /* What is loaded again is the same library, which still knows the adapter. */
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  find(library, "dat_ia_close", &ia_close);
  CHECK(ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
  CHECK(dlclose(library) == 0);

  /* And once more open, when the program ends. */
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  find(library, "dat_ia_openv", &ia_openv);
  async_evd = DAT_HANDLE_NULL;
  CHECK(ia_openv(name, 8, &async_evd, &ia, 1, 2, DAT_TRUE) == DAT_SUCCESS);
  CHECK(dlclose(library) == 0);
  return 0;
}
