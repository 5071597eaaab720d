/* A channel of events with the least cost: one thread over level-triggered epoll.
 *
 * `fanout-c` prints its port on one line, and exits at the end of its input. The first octet of a connection is `S` (supplier) or
 * `C` (consumer), and is echoed. Each event of a supplier has 64 octets, and is answered with one octet. Each consumer gets all
 * events that come after its echo, the next one after the octet by which it has acknowledged the last one. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../loopback.h"

enum { READY = 256, EVENT = 64, QUEUE = 8192, BUFFER = EVENT * 256 };

struct connection {
    int fd;
    char role;      /* 0 until its first octet */
    size_t partial; /* octets in `event` */
    unsigned char event[EVENT];
    uint64_t next;  /* the number of the event that a consumer gets next, or has got and not acknowledged */
    int is_waiting; /* whether a consumer has acknowledged all that it got */
    struct connection *previous, *following; /* consumers alone */
};

static unsigned char queue[QUEUE][EVENT];
static uint64_t received; /* events of all suppliers so far */
static struct connection consumers = {.previous = &consumers, .following = &consumers};
static int epoll_fd;

static void watch(int fd, void *data) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

static void close_connection(struct connection *connection) {
    if (connection->role == 'C') {
        connection->previous->following = connection->following;
        connection->following->previous = connection->previous;
    }
    close(connection->fd); /* which also removes it from epoll */
    free(connection);
}

/* Writes a few octets; returns whether the connection is still open. At most one event is on its way to a consumer, so that
 * there is room in the buffer of the socket. */
static int send_all(struct connection *connection, const void *octets, size_t count) {
    ssize_t sent;
    do sent = send(connection->fd, octets, count, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0 && (size_t)sent != count) {
        fputs("fanout-c: the buffer of a socket has no room for one event\n", stderr);
        exit(1);
    }
    return sent >= 0;
}

/* Sends the next event to a consumer that waits. A connection that breaks is closed when it is read. */
static void send_next(struct connection *consumer) {
    if (!consumer->is_waiting || consumer->next == received) return;
    if (received - consumer->next > QUEUE) {
        fputs("fanout-c: a consumer is more events behind than the queue holds\n", stderr);
        exit(1);
    }
    consumer->is_waiting = 0;
    send_all(consumer, queue[consumer->next % QUEUE], EVENT);
}

/* Takes one event of a supplier: its answer comes first, then the consumers. */
static int take_event(struct connection *supplier, const unsigned char *event) {
    memcpy(queue[received++ % QUEUE], event, EVENT);
    if (!send_all(supplier, "", 1)) return 0;
    for (struct connection *it = consumers.following; it != &consumers; it = it->following) send_next(it);
    return 1;
}

static int take_role(struct connection *connection, char role) {
    if (role != 'S' && role != 'C') return 0;
    connection->role = role;
    if (role == 'C') {
        connection->next = received;
        connection->is_waiting = 1;
        connection->previous = consumers.previous;
        connection->following = &consumers;
        consumers.previous->following = connection;
        consumers.previous = connection;
    }
    return send_all(connection, &role, 1);
}

/* Reads once; returns whether the connection is still open. */
static int take_octets(struct connection *connection) {
    static unsigned char buffer[BUFFER];
    ssize_t count = recv(connection->fd, buffer, connection->role ? BUFFER : 1, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (count <= 0) return 0;
    if (!connection->role) return take_role(connection, (char)buffer[0]);
    if (connection->role == 'C') {
        if (count != 1 || connection->is_waiting) return 0; /* one event, one acknowledgment */
        connection->next++;
        connection->is_waiting = 1;
        send_next(connection);
        return 1;
    }
    for (ssize_t at = 0; at < count;) {
        size_t missing = EVENT - connection->partial, rest = (size_t)(count - at), part = rest < missing ? rest : missing;
        memcpy(connection->event + connection->partial, buffer + at, part);
        connection->partial += part;
        at += (ssize_t)part;
        if (connection->partial == EVENT) {
            connection->partial = 0;
            if (!take_event(connection, connection->event)) return 0;
        }
    }
    return 1;
}

static void accept_one(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) die("accept");
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) die("calloc");
    connection->fd = fd;
    watch(fd, connection);
}

int main(void) {
    static struct epoll_event ready[READY];
    static int listener_mark, input_mark; /* their addresses distinguish these two from connections */
    signal(SIGPIPE, SIG_IGN);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) die("epoll_create1");
    int listener = open_listener(SOCK_NONBLOCK);
    watch(listener, &listener_mark);
    watch(STDIN_FILENO, &input_mark);
    for (;;) {
        int count = epoll_wait(epoll_fd, ready, READY, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            void *data = ready[i].data.ptr;
            char text[64];
            if (data == &input_mark) {
                if (read(STDIN_FILENO, text, sizeof text) <= 0) return 0;
            } else if (data == &listener_mark)
                accept_one(listener);
            else if (!take_octets(data))
                close_connection(data);
        }
    }
}
