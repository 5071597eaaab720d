/* Declarations that the server architectures share. Each architecture is a file with one function, in the
 * table of main.c. */
#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

enum {
    BACKLOG = 1024,
    REQUEST_OCTETS = 4,
    MAX_REPLY = 9999, /* the largest number that a request can have */
    MAX_WORKERS = 1024,
    MAX_EVENTS = 256,
};

/* The options of the command line. */
struct options {
    const char *host; /* an IPv4 address */
    unsigned port;    /* 0: any free port */
    unsigned workers; /* threads or processes of a pool */
    bool greeting;
};
extern struct options options;

/* The architectures. None returns. */
void run_iterative(void);
void run_select(void);
void run_poll(void);
void run_epoll(void);
void run_process_per_connection(void);
void run_pre_forked(void);
void run_thread_per_connection(void);
void run_accept_pool(void);
void run_accept_pool_mutex(void);
void run_queue_pool(void);
void run_leader_followers(void);
void run_io_uring(void);

/* support.c */

/* Prints one line with the reason in errno, and exits with 1. */
_Noreturn void fail(const char *operation);

/* Makes SIGTERM end this process with status 0. To be called first. */
void handle_sigterm(void);

/* Opens the listening socket. `flags` are those of accept4, such as SOCK_NONBLOCK. */
int open_listener(int flags);

/* Sets the number of descriptors that the process may have, up to the hard limit. */
void limit_descriptors(rlim_t count);

/* Prints the line `listening HOST:PORT`. */
void announce(int listener);

/* Accepts a connection and sets TCP_NODELAY. `flags` are those of accept4. Without free descriptors it waits,
 * and the connection stays in the backlog. Returns -1 if the flags have SOCK_NONBLOCK and there is no
 * connection yet. */
int accept_connection(int listener, int flags);

/* Makes SIGTERM end the children of this process, too. To be called before the first fork. */
void own_children(void);

/* The wait before another attempt, when descriptors, processes or threads are exhausted. */
void pause_briefly(void);

/* Starts a thread that is never joined, with a small stack. Tries again while threads are exhausted. */
void start_thread(void *(*function)(void *), void *argument);

/* Blocks for ever: the other threads do the work. */
_Noreturn void wait_for_ever(void);

/* transfer.c: the service */

/* "Hello\n" with its final NUL, as in figure 4.16 of the paper. */
#define GREETING "Hello\n"

/* The octets of all replies. */
extern char reply[MAX_REPLY];

void init_reply(void);

/* The number of octets for which a request asks, or -1 if it has other characters than digits. */
int parse_request(const char request[REQUEST_OCTETS]);

/* Serves a connection by blocking calls, and closes it. */
void serve(int fd);

/* The state of a connection without a thread or process of its own. */
struct session {
    char request[REQUEST_OCTETS];
    unsigned short received; /* octets in `request` */
    unsigned short unsent;   /* octets of the reply */
};

/* The condition for which a session waits. */
enum interest { INTEREST_READ, INTEREST_WRITE, INTEREST_NONE /* the connection is to be closed */ };

/* Allocates the table of sessions, for all descriptors that the process may have. */
void init_sessions(void);

/* The session of this descriptor. */
struct session *session_of(int fd);

/* Begins a session on a non-blocking descriptor: sends the greeting. */
enum interest session_open(int fd);

/* Reads a part of a request, and answers a whole one. */
enum interest session_readable(int fd);

/* Sends more of the reply. */
enum interest session_writable(int fd);

#endif
