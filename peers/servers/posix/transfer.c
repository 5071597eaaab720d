/* The service: a greeting, then for each request of four digits that many octets 'A', until the client
 * closes. A request with other characters ends the connection. The client closes first, so that TIME_WAIT is
 * on its side (section 4.1). */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_SESSIONS = 1 << 20 };

char reply[MAX_REPLY];

static struct session *sessions; /* by descriptor */
static size_t session_count;

void init_reply(void) { memset(reply, 'A', sizeof reply); }

int parse_request(const char request[REQUEST_OCTETS]) {
    int octets = 0;
    for (int i = 0; i < REQUEST_OCTETS; i++) {
        if (request[i] < '0' || request[i] > '9') return -1;
        octets = 10 * octets + (request[i] - '0');
    }
    return octets;
}

/* Sends all octets; returns false if the connection is broken. */
static bool send_all(int fd, const char *data, size_t len) {
    while (len > 0) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        data += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* Receives a whole request; returns false at the end of the connection. */
static bool receive_request(int fd, char request[REQUEST_OCTETS]) {
    size_t received = 0;
    while (received < REQUEST_OCTETS) {
        ssize_t octets = recv(fd, request + received, REQUEST_OCTETS - received, 0);
        if (octets < 0 && errno == EINTR) continue;
        if (octets <= 0) return false;
        received += (size_t)octets;
    }
    return true;
}

void serve(int fd) {
    char request[REQUEST_OCTETS];
    if (!options.greeting || send_all(fd, GREETING, sizeof GREETING)) {
        while (receive_request(fd, request)) {
            int octets = parse_request(request);
            if (octets < 0 || !send_all(fd, reply, (size_t)octets)) break;
        }
    }
    close(fd);
}

void init_sessions(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) fail("getrlimit");
    session_count = limit.rlim_cur < MAX_SESSIONS ? (size_t)limit.rlim_cur : MAX_SESSIONS;
    sessions = calloc(session_count, sizeof *sessions); /* pages without sessions take no memory */
    if (!sessions) fail("calloc");
}

struct session *session_of(int fd) { return &sessions[fd]; }

enum interest session_open(int fd) {
    if ((size_t)fd >= session_count) return INTEREST_NONE;
    sessions[fd] = (struct session){.received = 0};
    /* The buffer of a new connection has room for the greeting. */
    if (options.greeting && send(fd, GREETING, sizeof GREETING, MSG_NOSIGNAL) != sizeof GREETING) return INTEREST_NONE;
    return INTEREST_READ;
}

enum interest session_readable(int fd) {
    struct session *session = session_of(fd);
    ssize_t octets = recv(fd, session->request + session->received, REQUEST_OCTETS - (size_t)session->received, 0);
    if (octets < 0 && (errno == EAGAIN || errno == EINTR)) return INTEREST_READ;
    if (octets <= 0) return INTEREST_NONE;
    session->received = (unsigned short)(session->received + octets);
    if (session->received < REQUEST_OCTETS) return INTEREST_READ;
    session->received = 0;
    int number = parse_request(session->request);
    if (number < 0) return INTEREST_NONE;
    session->unsent = (unsigned short)number;
    return number > 0 ? session_writable(fd) : INTEREST_READ;
}

enum interest session_writable(int fd) {
    struct session *session = session_of(fd);
    ssize_t sent = send(fd, reply, session->unsent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR ? INTEREST_WRITE : INTEREST_NONE;
    session->unsent = (unsigned short)(session->unsent - sent);
    return session->unsent > 0 ? INTEREST_WRITE : INTEREST_READ;
}
