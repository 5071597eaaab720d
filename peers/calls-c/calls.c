/* Servers of calls with the least cost: one thread over level-triggered epoll, or a thread for each connection.
 *
 * `calls-c epoll|threads REQUEST REPLY MICROSECONDS` prints its port on one line, and answers each REQUEST octets of a
 * connection with REPLY octets, after MICROSECONDS of processor time. It answers each line of its input with the number
 * of calls so far, and exits at the end of its input. Requests that one read brings are answered by one write. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../loopback.h"

enum { EVENTS = 256, BUFFER = 16384, LONGEST = 4096, STACK = 128 << 10 };

struct connection {
    int fd;
    size_t partial; /* octets of a request that has not arrived in full */
    size_t unsent;  /* octets of replies that the peer has not accepted yet */
};

static size_t request_octets, reply_octets;
static long work_nanos;
static atomic_ulong calls;
static int epoll_fd;
static char replies[BUFFER]; /* all zero; any part of it is as good as another */

static long thread_nanos(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void work(size_t count) {
    if (work_nanos)
        for (; count > 0; count--)
            for (long end = thread_nanos() + work_nanos; thread_nanos() < end;) {
            }
}

/* Reads once; returns whether the connection is still open. Adds the octets of the replies that are due. */
static int take_requests(struct connection *connection, char *buffer) {
    ssize_t received = recv(connection->fd, buffer, BUFFER, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (received <= 0) return 0;
    size_t octets = connection->partial + (size_t)received, count = octets / request_octets;
    connection->partial = octets % request_octets;
    connection->unsent += count * reply_octets;
    work(count);
    atomic_fetch_add_explicit(&calls, count, memory_order_relaxed);
    return 1;
}

/* Sends what the peer accepts; returns whether the connection is still open. */
static int send_replies(struct connection *connection) {
    while (connection->unsent > 0) {
        size_t octets = connection->unsent < BUFFER ? connection->unsent : BUFFER;
        ssize_t sent = send(connection->fd, replies, octets, MSG_NOSIGNAL);
        if (sent >= 0)
            connection->unsent -= (size_t)sent;
        else if (errno != EINTR)
            return errno == EAGAIN;
    }
    return 1;
}

static struct connection *accept_one(int listener, int flags) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | flags), on = 1;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) die("accept");
        return NULL;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) die("calloc");
    connection->fd = fd;
    return connection;
}

static void close_connection(struct connection *connection) {
    close(connection->fd); /* which also removes it from epoll */
    free(connection);
}

/* Reads from the parent once; answers each line, and exits at the end. */
static void answer_parent(void) {
    char text[64];
    ssize_t received = read(STDIN_FILENO, text, sizeof text);
    if (received == 0 || (received < 0 && errno != EINTR && errno != EAGAIN)) exit(0);
    for (ssize_t i = 0; i < received; i++)
        if (text[i] == '\n') printf("%lu\n", atomic_load(&calls));
    fflush(stdout);
}

static int watch(int operation, int fd, unsigned events, void *data) {
    struct epoll_event event = {.events = events, .data.ptr = data};
    return epoll_ctl(epoll_fd, operation, fd, &event);
}

static void serve_by_epoll(void) {
    static struct epoll_event events[EVENTS];
    static char buffer[BUFFER];
    static int listener_mark, input_mark; /* their addresses distinguish these two from connections */
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int listener = open_listener(SOCK_NONBLOCK);
    if (watch(EPOLL_CTL_ADD, listener, EPOLLIN, &listener_mark) < 0) die("epoll_ctl");
    if (watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, &input_mark) < 0) die("standard input must be a pipe or terminal");
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            void *data = events[i].data.ptr;
            struct connection *connection = data;
            if (data == &input_mark)
                answer_parent();
            else if (data == &listener_mark) {
                while ((connection = accept_one(listener, SOCK_NONBLOCK)) != NULL)
                    if (watch(EPOLL_CTL_ADD, connection->fd, EPOLLIN, connection) < 0) die("epoll_ctl");
            } else {
                size_t before = connection->unsent; /* nothing more is read while replies are unsent */
                if ((before == 0 && !take_requests(connection, buffer)) || !send_replies(connection))
                    close_connection(connection);
                else if ((before > 0) != (connection->unsent > 0))
                    watch(EPOLL_CTL_MOD, connection->fd, connection->unsent > 0 ? EPOLLOUT : EPOLLIN, connection);
            }
        }
    }
}

static void *serve_connection(void *data) {
    char buffer[BUFFER];
    struct connection *connection = data;
    while (take_requests(connection, buffer) && send_replies(connection)) {
    }
    close_connection(connection);
    return NULL;
}

static void *accept_for_threads(void *data) {
    int listener = *(int *)data;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    while (listener >= 0) {
        struct connection *connection = accept_one(listener, 0);
        pthread_t thread;
        if (connection && (errno = pthread_create(&thread, &attributes, serve_connection, connection)) != 0) {
            perror("pthread_create");
            close_connection(connection);
        }
    }
    return NULL;
}

static void serve_by_threads(void) {
    static int listener;
    pthread_t acceptor;
    listener = open_listener(0);
    if (pthread_create(&acceptor, NULL, accept_for_threads, &listener) != 0) die("pthread_create");
    for (;;) answer_parent();
}

int main(int argc, char **argv) {
    int by_epoll = argc == 5 && strcmp(argv[1], "epoll") == 0, by_threads = argc == 5 && strcmp(argv[1], "threads") == 0;
    if (by_epoll || by_threads) {
        request_octets = strtoul(argv[2], NULL, 10);
        reply_octets = strtoul(argv[3], NULL, 10);
        work_nanos = strtol(argv[4], NULL, 10) * 1000;
    }
    if (request_octets < 1 || request_octets > LONGEST || reply_octets < 1 || reply_octets > LONGEST || work_nanos < 0) {
        fprintf(stderr, "usage: calls-c epoll|threads REQUEST REPLY MICROSECONDS (1 to %d octets)\n", LONGEST);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (by_epoll)
        serve_by_epoll();
    else
        serve_by_threads();
}
