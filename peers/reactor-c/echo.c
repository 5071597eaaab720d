/* The minimal cost of an echo server: one thread, level-triggered epoll, plain calls.
 *
 * Prints its port on one line, echoes its input, and exits at the end of its standard input. Per event it makes one
 * read and one write. Octets that the peer does not accept at once are queued, and nothing more is read meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../loopback.h"

enum { EVENTS = 256, BUFFER = 16384 };

struct connection {
    int fd;
    char *rest; /* octets that the peer has not accepted yet */
    size_t rest_len, rest_sent;
};

static int epoll_fd;
static int spare_fd; /* closed for a moment when descriptors run out, so that the backlog can be emptied */
static char buffer[BUFFER];

static int watch(int operation, int fd, unsigned events, void *data) {
    struct epoll_event event = {.events = events, .data.ptr = data};
    return epoll_ctl(epoll_fd, operation, fd, &event);
}

static void shed(int listener) {
    close(spare_fd);
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0) close(fd);
    spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_all(int listener) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            if (errno == EMFILE || errno == ENFILE) shed(listener);
            return;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct connection *connection = calloc(1, sizeof *connection);
        if (connection) connection->fd = fd;
        if (!connection || watch(EPOLL_CTL_ADD, fd, EPOLLIN, connection) < 0) {
            free(connection);
            close(fd);
        }
    }
}

static void close_connection(struct connection *connection) {
    close(connection->fd); /* which also removes it from epoll */
    free(connection->rest);
    free(connection);
}

/* Sends; returns the number of accepted octets, or -1 if the peer has closed. */
static ssize_t send_some(int fd, const char *data, size_t len) {
    for (;;) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EAGAIN) return 0;
        if (errno != EINTR) return -1;
    }
}

static int keep(struct connection *connection, const char *data, size_t len) {
    connection->rest = malloc(len);
    if (!connection->rest) return -1;
    memcpy(connection->rest, data, len);
    connection->rest_len = len;
    connection->rest_sent = 0;
    return watch(EPOLL_CTL_MOD, connection->fd, EPOLLOUT, connection);
}

static void readable(struct connection *connection) {
    ssize_t received = recv(connection->fd, buffer, sizeof buffer, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return; /* level-triggered: it is reported again */
    if (received <= 0) {
        close_connection(connection);
        return;
    }
    ssize_t sent = send_some(connection->fd, buffer, received);
    if (sent < 0 || (sent < received && keep(connection, buffer + sent, received - sent) < 0)) close_connection(connection);
}

static void writable(struct connection *connection) {
    ssize_t sent = send_some(connection->fd, connection->rest + connection->rest_sent,
                             connection->rest_len - connection->rest_sent);
    if (sent < 0) {
        close_connection(connection);
        return;
    }
    connection->rest_sent += sent;
    if (connection->rest_sent < connection->rest_len) return;
    free(connection->rest);
    connection->rest = NULL;
    if (watch(EPOLL_CTL_MOD, connection->fd, EPOLLIN, connection) < 0) close_connection(connection);
}

/* Whether standard input has ended. */
static int parent_has_gone(void) {
    ssize_t received = read(STDIN_FILENO, buffer, sizeof buffer);
    return received == 0 || (received < 0 && errno != EINTR && errno != EAGAIN);
}

int main(void) {
    static struct epoll_event events[EVENTS];
    static int listener_mark, input_mark; /* their addresses distinguish these two from connections */
    signal(SIGPIPE, SIG_IGN);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int listener = open_listener(SOCK_NONBLOCK);
    if (watch(EPOLL_CTL_ADD, listener, EPOLLIN, &listener_mark) < 0) die("epoll_ctl");
    if (watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, &input_mark) < 0) die("standard input must be a pipe or terminal");
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            void *data = events[i].data.ptr;
            if (data == &listener_mark)
                accept_all(listener);
            else if (data == &input_mark) {
                if (parent_has_gone()) return 0;
            } else if (((struct connection *)data)->rest)
                writable(data);
            else
                readable(data);
        }
    }
}
