/* The listening socket, the end of the process, and threads: the parts that all architectures need. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RETRY_MILLISECONDS = 10, STACK_OCTETS = 64 << 10 };

static pid_t server;       /* the process that listens; its children have other ids */
static bool has_children;

_Noreturn void fail(const char *operation) {
    fprintf(stderr, "posix: %s: %s\n", operation, strerror(errno));
    exit(1);
}

/* Ends the process at SIGTERM. Open connections are reset or closed by the kernel. */
static void terminate(int signal_number) {
    (void)signal_number;
    if (has_children && getpid() == server) {
        kill(0, SIGTERM); /* this process itself has it blocked here */
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
    }
    _exit(0);
}

void handle_sigterm(void) {
    struct sigaction action = {.sa_handler = terminate};
    sigfillset(&action.sa_mask);
    server = getpid();
    if (sigaction(SIGTERM, &action, NULL) < 0) fail("sigaction");
}

void own_children(void) {
    /* A group of its own, so that one kill reaches all children. A session leader has one already. */
    if (setpgid(0, 0) < 0 && getpgrp() != getpid()) fail("setpgid");
    has_children = true;
}

void limit_descriptors(rlim_t count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) fail("getrlimit");
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) fail("setrlimit");
}

int open_listener(int flags) {
    limit_descriptors(RLIM_INFINITY);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)options.port)};
    if (inet_pton(AF_INET, options.host, &address.sin_addr) != 1) {
        fprintf(stderr, "posix: `%s` is not an IPv4 address\n", options.host);
        exit(2);
    }
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) fail("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0) {
        char operation[64];
        snprintf(operation, sizeof operation, "cannot listen on %s:%u", options.host, options.port);
        fail(operation);
    }
    return fd;
}

void announce(int listener) {
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &len) < 0) fail("getsockname");
    printf("listening %s:%u\n", options.host, ntohs(address.sin_port));
    if (fflush(stdout) != 0) fail("cannot write to the standard output");
}

int accept_connection(int listener, int flags) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, flags | SOCK_CLOEXEC);
        if (fd >= 0) {
            int on = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return fd;
        }
        switch (errno) {
        case EAGAIN:
            return -1;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            pause_briefly(); /* the connection stays in the backlog */
            if (flags & SOCK_NONBLOCK) return -1;
            break;
        case EBADF:
        case EFAULT:
        case EINVAL:
        case ENOTSOCK:
            fail("accept");
        default:
            break; /* EINTR, or an error of that connection */
        }
    }
}

void pause_briefly(void) { poll(NULL, 0, RETRY_MILLISECONDS); }

void start_thread(void *(*function)(void *), void *argument) {
    static pthread_attr_t attributes;
    static bool is_initialized; /* one thread at a time starts others */
    if (!is_initialized) {
        size_t stack = STACK_OCTETS > PTHREAD_STACK_MIN ? STACK_OCTETS : (size_t)PTHREAD_STACK_MIN;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, stack);
        is_initialized = true;
    }
    pthread_t thread;
    while ((errno = pthread_create(&thread, &attributes, function, argument)) != 0) {
        if (errno != EAGAIN) fail("pthread_create");
        pause_briefly();
    }
}

_Noreturn void wait_for_ever(void) {
    for (;;) pause();
}
