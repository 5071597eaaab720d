/* Declarations that the server architectures share. Each architecture is a file with one function, in the
 * table of main.c. */
#ifndef SERVER_H
#define SERVER_H

#include <winsock2.h>
#include <ws2tcpip.h>

#include <windows.h>

#include <stdbool.h>

enum {
    BACKLOG = 1024,
    REQUEST_OCTETS = 4,
    MAX_REPLY = 9999, /* the largest number that a request can have */
    MAX_WORKERS = 1024,
    STACK_OCTETS = 64 << 10,
};

/* The options of the command line. */
struct options {
    const char *host; /* an IPv4 address */
    unsigned port;    /* 0: any free port */
    unsigned workers; /* threads of a pool */
    bool greeting;
};
extern struct options options;

/* The architectures. None returns. */
void run_iterative(void);
void run_select(void);
void run_event_select(void);
void run_thread_per_connection(void);
void run_accept_pool(void);
void run_completion_ports(void);

/* support.c */

/* Prints one line with the reason and its number, and exits with 1. */
_Noreturn void fail(const char *operation, DWORD error);
_Noreturn void fail_socket(const char *operation);

/* Opens the listening socket. */
SOCKET open_listener(void);

/* Prints the line `listening HOST:PORT`. */
void announce(SOCKET listener);

/* Sets TCP_NODELAY on a new connection. */
void set_nodelay(SOCKET connection);

/* Makes a socket non-blocking. */
void set_nonblocking(SOCKET socket);

/* The mode of a listener. */
enum mode { BLOCKING, NONBLOCKING };

/* Accepts a connection and sets TCP_NODELAY. Without free handles it waits, and the connection stays in the
 * backlog. Returns INVALID_SOCKET if the mode is non-blocking and there is no connection yet. */
SOCKET accept_connection(SOCKET listener, enum mode mode);

/* The wait before another attempt, when handles, buffers or threads are exhausted. */
void pause_briefly(void);

/* Starts a thread that is never joined, with a small stack. Tries again while threads are exhausted. */
void start_thread(LPTHREAD_START_ROUTINE function, void *argument);

/* transfer.c: the service */

/* "Hello\n" with its final NUL, as in figure 4.16 of the paper. */
#define GREETING "Hello\n"

/* The octets of all replies. */
extern char reply[MAX_REPLY];

void init_reply(void);

/* The number of octets for which a request asks, or -1 if it has other characters than digits. */
int parse_request(const char request[REQUEST_OCTETS]);

/* Serves a connection by blocking calls, and closes it. */
void serve(SOCKET connection);

/* The state of a connection without a thread of its own. */
struct session {
    SOCKET socket;
    char request[REQUEST_OCTETS];
    int received; /* octets in `request` */
    int unsent;   /* octets of the reply */
};

/* The condition for which a session waits. */
enum interest { INTEREST_READ, INTEREST_WRITE, INTEREST_NONE /* the connection is to be closed */ };

/* Begins a session on a non-blocking socket: sends the greeting. */
enum interest session_open(struct session *session, SOCKET socket);

/* Reads a part of a request, and answers a whole one. */
enum interest session_readable(struct session *session);

/* Sends more of the reply. */
enum interest session_writable(struct session *session);

#endif
