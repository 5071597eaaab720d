/* The boundary between a process and the services of shared libraries.
 *
 * A library exports SPANDREL_SERVICE_LIBRARY and one or more factories, which `dynamic` directives name:
 *
 *     SPANDREL_SERVICE_LIBRARY
 *     spandrel_service *make_echo(void);      // dynamic Echo Service_Object * libecho:make_echo() "-p 7"
 *     spandrel_service echo_service;          // dynamic Echo Service_Object * libecho:echo_service "-p 7"
 *
 * Structures grow at their ends only: `size` says which members the other side knows. Functions return 0 for success.
 * The process calls the methods of a service by one thread at a time, except for `info` and `put`. The callbacks of all
 * handlers of a service are called by one thread, which is the service's own: one that blocks delays those of its service, and
 * no other. They may run at the same time as a method. No C++ exception and no Rust panic may cross the boundary.
 *
 * A service has at most 16,384 handlers, as many timers, and 1,024 threads; a further one is refused. A crash (a signal such as
 * SIGSEGV, `abort`, `exit`) ends the whole process: a library that is not trusted that far belongs into a process of its own. */

#ifndef SPANDREL_SERVICE_H
#define SPANDREL_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPANDREL_SERVICE_VERSION 2u

#ifdef _WIN32
#define SPANDREL_SERVICE_EXPORT __declspec(dllexport)
#else
#define SPANDREL_SERVICE_EXPORT __attribute__((visibility("default")))
#endif

/* Marks a library, and tells the version of its interface. */
typedef struct spandrel_service_abi {
  char magic[8]; /* "SPNDRLSV" */
  uint32_t version;
  uint32_t service_size; /* sizeof(spandrel_service) */
} spandrel_service_abi_t;

#define SPANDREL_SERVICE_LIBRARY                                                                   \
  SPANDREL_SERVICE_EXPORT const spandrel_service_abi_t spandrel_service_abi = {                    \
      {'S', 'P', 'N', 'D', 'R', 'L', 'S', 'V'}, SPANDREL_SERVICE_VERSION, sizeof(spandrel_service)};

typedef enum spandrel_log_level {
  SPANDREL_LOG_ERROR = 1,
  SPANDREL_LOG_WARN = 2,
  SPANDREL_LOG_INFO = 3,
  SPANDREL_LOG_DEBUG = 4,
  SPANDREL_LOG_TRACE = 5
} spandrel_log_level;

/* Kinds of events, to be combined. */
enum { SPANDREL_INPUT = 1, SPANDREL_OUTPUT = 2, SPANDREL_EXCEPTION = 4 };

/* A socket or a file descriptor. */
typedef intptr_t spandrel_handle;

/* The callbacks of an event handler. An absent one (NULL) closes the handler when its event arrives, and so does a callback
 * that returns another value than 0. */
typedef struct spandrel_handler {
  uint32_t size; /* sizeof(spandrel_handler) */
  int (*input)(void *object, uint64_t handler);
  int (*output)(void *object, uint64_t handler);
  int (*exception)(void *object, uint64_t handler);
  int (*timeout)(void *object, uint64_t handler, uint64_t argument);
  int (*notice)(void *object, uint64_t handler, uint64_t notice);
  /* The last call. The handle is not used by the process any more. */
  void (*close)(void *object, uint64_t handler);
} spandrel_handler;

/* The process, as a service sees it: valid from `init` to the end of the service's last thread, handler and call. All
 * functions may be called from any thread. */
typedef struct spandrel_host {
  uint32_t size;
  uint32_t version;
  void *context; /* the first argument of all functions */
  const char *name; /* the name of the service in this process, UTF-8 */
  void (*log)(void *context, uint32_t level, const char *text, size_t length);
  /* Gives the reason for which the running method will fail. */
  void (*fail)(void *context, const char *text, size_t length);
  /* Waits for events of a handle, or for timers and notices alone (handle -1). The handlers that `init` registers wait
   * while the service runs. `handler` gets the number of the handler; it is written before its first callback. */
  int (*register_handler)(void *context, spandrel_handle handle, uint32_t interest, const spandrel_handler *callbacks,
                          void *object, uint64_t *handler);
  int (*set_interest)(void *context, uint64_t handler, uint32_t interest);
  int (*remove_handler)(void *context, uint64_t handler);
  /* Calls `timeout` after a delay, and then at an interval if that is not 0. `timer` gets its number, and may be NULL. */
  int (*schedule)(void *context, uint64_t handler, uint64_t delay_microseconds, uint64_t interval_microseconds,
                  uint64_t argument, uint64_t *timer);
  int (*cancel)(void *context, uint64_t timer);
  /* Calls `notice` in the thread of the handlers. */
  int (*notify)(void *context, uint64_t handler, uint64_t notice);
  /* Runs a function in a thread. The library stays mapped until it returns. Threads that are made in another way must have
   * ended before `fini` returns. */
  int (*spawn)(void *context, void (*run)(void *argument), void *argument);
} spandrel_host;

typedef enum spandrel_message_kind { SPANDREL_DATA = 0, SPANDREL_PROTOCOL = 1 } spandrel_message_kind;

/* A message between the modules of a stream: one or more blocks of octets, which are only read. Its owner releases it, or
 * passes it on. */
typedef struct spandrel_message {
  uint32_t size; /* sizeof(spandrel_message) */
  uint32_t kind;
  uint32_t priority;
  uint32_t reserved;
  const uint8_t *data;
  size_t length;
  struct spandrel_message *next_block; /* belongs to the message; NULL at the end */
  void *owner; /* of the side that has made the message */
  void (*release)(struct spandrel_message *message);
} spandrel_message;

typedef enum spandrel_side { SPANDREL_READER = 0, SPANDREL_WRITER = 1 } spandrel_side;

/* The neighbours of a module, valid during a call of `put` or `svc`. Both functions take the message over, whatever they return. */
typedef struct spandrel_next {
  uint32_t size;
  void *context;
  int (*put_next)(void *context, spandrel_message *message);
  int (*reply)(void *context, spandrel_message *message);
} spandrel_next;

/* The thread of a module, valid in that thread during `svc`. */
typedef struct spandrel_thread {
  uint32_t size;
  const spandrel_next *next; /* its messages go up, to the application */
  void *context;
  /* Whether the module is part of its stream: 1 or 0. While the module or the stream is suspended, the call waits. */
  int (*is_running)(void *context);
} spandrel_thread;

enum { SPANDREL_SERVICE_OBJECT = 1, SPANDREL_MODULE = 2 };

/* A service or a module. All functions but `init` and `info` may be NULL; a module needs `put`. */
typedef struct spandrel_service {
  uint32_t size; /* sizeof(spandrel_service) */
  uint32_t kind; /* SPANDREL_SERVICE_OBJECT or SPANDREL_MODULE */
  void *object; /* the first argument of all functions */
  int (*init)(void *object, const spandrel_host *host, int argc, const char *const *argv);
  int (*fini)(void *object);
  int (*suspend)(void *object);
  int (*resume)(void *object);
  /* Writes at most `capacity` octets of text; returns its whole length. */
  size_t (*info)(void *object, char *text, size_t capacity);
  /* Processes a message, which it takes over if it returns 0. Called by any thread, by several at the same time. */
  int (*put)(void *object, uint32_t side, spandrel_message *message, const spandrel_next *next);
  /* Brings messages into the stream of a module, in a thread that begins when the module is part of the stream. It returns soon
   * after `is_running` is 0. */
  void (*svc)(void *object, const spandrel_thread *thread);
  /* Releases the service itself: the last call. */
  void (*destroy)(struct spandrel_service *service);
} spandrel_service;

#ifdef __cplusplus
}
#endif

#endif
