/* A service in C: counts ticks of a timer, and sends their number to each TCP client. Modules in C: ROT13, and numbers.
 *
 *     dynamic Ticks Service_Object * libticks:make_ticks() "-p PORT [-t FILE] [-b FILE] [-n COUNT]"
 *
 * With -t, a thread runs until the file exists; with -b, the handler of a client does, and tells the client first. -n
 * registers further handlers. */

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spandrel_service.h"

SPANDREL_SERVICE_LIBRARY

struct ticks {
  spandrel_service service;
  const spandrel_host *host;
  int listener;
  unsigned short port;
  unsigned long ticks;
  unsigned long notices;
  char file[256];
  char blocked[256];
};

static int fail(const struct ticks *ticks, const char *text) {
  ticks->host->fail(ticks->host->context, text, strlen(text));
  return -1;
}

static int on_input(void *object, uint64_t handler) {
  struct ticks *ticks = object;
  int client = accept(ticks->listener, NULL, NULL);
  if (ticks->blocked[0] != 0 && client >= 0) (void)!write(client, "blocked\n", 8);
  while (ticks->blocked[0] != 0 && access(ticks->blocked, F_OK) != 0) usleep(1000);
  if (client >= 0) {
    char text[64];
    int length = snprintf(text, sizeof text, "ticks %lu notices %lu\n", ticks->ticks, ticks->notices);
    (void)!write(client, text, (size_t)length);
    close(client);
    ticks->host->notify(ticks->host->context, handler, 1);
  }
  return 0;
}

static int on_timeout(void *object, uint64_t handler, uint64_t argument) {
  struct ticks *ticks = object;
  (void)handler;
  ticks->ticks += argument;
  return 0;
}

static int on_notice(void *object, uint64_t handler, uint64_t notice) {
  struct ticks *ticks = object;
  (void)handler;
  ticks->notices += notice;
  return 0;
}

static void on_close(void *object, uint64_t handler) {
  struct ticks *ticks = object;
  (void)handler;
  close(ticks->listener);
  ticks->listener = -1;
}

static void until_file(void *object) {
  struct ticks *ticks = object;
  while (access(ticks->file, F_OK) != 0) usleep(1000);
}

static int ticks_init(void *object, const spandrel_host *host, int argc, const char *const *argv) {
  static const spandrel_handler callbacks = {
      sizeof(spandrel_handler), on_input, NULL, NULL, on_timeout, on_notice, on_close};
  struct ticks *ticks = object;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  uint64_t handler;
  int i, count = 0;
  ticks->host = host;
  for (i = 0; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "-p") == 0) address.sin_port = htons((unsigned short)atoi(argv[i + 1]));
    else if (strcmp(argv[i], "-t") == 0) snprintf(ticks->file, sizeof ticks->file, "%s", argv[i + 1]);
    else if (strcmp(argv[i], "-b") == 0) snprintf(ticks->blocked, sizeof ticks->blocked, "%s", argv[i + 1]);
    else if (strcmp(argv[i], "-n") == 0) count = atoi(argv[i + 1]);
    else return fail(ticks, "expected -p PORT or -t FILE");
  }
  ticks->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (ticks->listener < 0 || bind(ticks->listener, (struct sockaddr *)&address, size) != 0 ||
      listen(ticks->listener, 16) != 0 || getsockname(ticks->listener, (struct sockaddr *)&address, &size) != 0)
    return fail(ticks, "cannot listen");
  ticks->port = ntohs(address.sin_port);
  if (host->register_handler(host->context, ticks->listener, SPANDREL_INPUT, &callbacks, ticks, &handler) != 0)
    return fail(ticks, "cannot register");
  if (host->schedule(host->context, handler, 1000, 1000, 1, NULL) != 0) return fail(ticks, "no timer");
  for (i = 0; i < count; i++)
    if (host->register_handler(host->context, -1, 0, &(spandrel_handler){.size = sizeof(spandrel_handler)}, ticks, &handler) != 0)
      return fail(ticks, "too many handlers");
  if (ticks->file[0] != 0 && host->spawn(host->context, until_file, ticks) != 0) return fail(ticks, "no thread");
  host->log(host->context, SPANDREL_LOG_INFO, "ticks are counted", 17);
  return 0;
}

static size_t ticks_info(void *object, char *text, size_t capacity) {
  struct ticks *ticks = object;
  return (size_t)snprintf(text, capacity, "127.0.0.1:%u/tcp # ticks of version " VERSION, ticks->port);
}

static void ticks_destroy(spandrel_service *service) { free(service->object); }

SPANDREL_SERVICE_EXPORT spandrel_service *make_ticks(void) {
  struct ticks *ticks = calloc(1, sizeof *ticks);
  if (ticks == NULL) return NULL;
  ticks->service = (spandrel_service){.size = sizeof(spandrel_service),
                                      .kind = SPANDREL_SERVICE_OBJECT,
                                      .object = ticks,
                                      .init = ticks_init,
                                      .info = ticks_info,
                                      .destroy = ticks_destroy};
  return &ticks->service;
}

/* The module: a message of its own takes the place of the one that it gets. */

struct rotated {
  spandrel_message message;
  uint8_t octets[];
};

static void rotated_release(spandrel_message *message) { free(message->owner); }

static uint8_t rot13(uint8_t octet) {
  if (!isalpha(octet)) return octet;
  return (uint8_t)((tolower(octet) - 'a' + 13) % 26 + (isupper(octet) ? 'A' : 'a'));
}

static int rot13_init(void *object, const spandrel_host *host, int argc, const char *const *argv) {
  (void)object, (void)host, (void)argc, (void)argv;
  return 0;
}

static size_t rot13_info(void *object, char *text, size_t capacity) {
  (void)object;
  return (size_t)snprintf(text, capacity, "ROT13");
}

static int rot13_put(void *object, uint32_t side, spandrel_message *message, const spandrel_next *next) {
  const spandrel_message *block;
  struct rotated *rotated;
  size_t length = 0;
  (void)object, (void)side;
  for (block = message; block != NULL; block = block->next_block) length += block->length;
  rotated = malloc(sizeof *rotated + length);
  if (rotated == NULL) return -1;
  rotated->message = (spandrel_message){.size = sizeof(spandrel_message),
                                        .kind = message->kind,
                                        .priority = message->priority,
                                        .data = rotated->octets,
                                        .length = length,
                                        .owner = rotated,
                                        .release = rotated_release};
  length = 0;
  for (block = message; block != NULL; block = block->next_block)
    for (size_t i = 0; i < block->length; i++) rotated->octets[length++] = rot13(block->data[i]);
  message->release(message);
  next->put_next(next->context, &rotated->message);
  return 0;
}

SPANDREL_SERVICE_EXPORT spandrel_service rot13_module = {.size = sizeof(spandrel_service),
                                                         .kind = SPANDREL_MODULE,
                                                         .init = rot13_init,
                                                         .info = rot13_info,
                                                         .put = rot13_put};

/* The entry of a stream: sends up the numbers from 1 on, one each millisecond. */
static int numbers_put(void *object, uint32_t side, spandrel_message *message, const spandrel_next *next) {
  (void)object, (void)side;
  next->put_next(next->context, message);
  return 0;
}

static void numbers_svc(void *object, const spandrel_thread *thread) {
  unsigned long number = 0;
  (void)object;
  while (thread->is_running(thread->context)) {
    struct rotated *sent = malloc(sizeof *sent + 24);
    if (sent == NULL) return;
    sent->message = (spandrel_message){.size = sizeof(spandrel_message),
                                       .kind = SPANDREL_DATA,
                                       .data = sent->octets,
                                       .length = (size_t)snprintf((char *)sent->octets, 24, "%lu", ++number),
                                       .owner = sent,
                                       .release = rotated_release};
    thread->next->put_next(thread->next->context, &sent->message);
    usleep(1000);
  }
}

SPANDREL_SERVICE_EXPORT spandrel_service numbers_module = {.size = sizeof(spandrel_service),
                                                           .kind = SPANDREL_MODULE,
                                                           .init = rot13_init,
                                                           .info = rot13_info,
                                                           .put = numbers_put,
                                                           .svc = numbers_svc};
