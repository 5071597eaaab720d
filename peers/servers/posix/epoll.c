/* Event-driven by epoll, level-triggered: one thread, any number of descriptors. */
#include "server.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int epoll_fd;

static void control(int operation, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll_fd, operation, fd, &event) < 0) fail("epoll_ctl");
}

static void accept_one(int listener) {
    int fd = accept_connection(listener, SOCK_NONBLOCK);
    if (fd < 0) return;
    if (session_open(fd) == INTEREST_READ)
        control(EPOLL_CTL_ADD, fd, EPOLLIN);
    else
        close(fd);
}

static void handle(int fd) {
    bool is_writing = session_of(fd)->unsent > 0;
    enum interest interest = is_writing ? session_writable(fd) : session_readable(fd);
    if (interest == INTEREST_NONE)
        close(fd); /* which also removes it from epoll */
    else if ((interest == INTEREST_WRITE) != is_writing)
        control(EPOLL_CTL_MOD, fd, interest == INTEREST_WRITE ? EPOLLOUT : EPOLLIN);
}

void run_epoll(void) {
    static struct epoll_event events[MAX_EVENTS];
    int listener = open_listener(SOCK_NONBLOCK);
    init_sessions();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) fail("epoll_create1");
    control(EPOLL_CTL_ADD, listener, EPOLLIN);
    announce(listener);
    for (;;) {
        int ready = epoll_wait(epoll_fd, events, MAX_EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener)
                accept_one(listener);
            else
                handle(events[i].data.fd);
        }
    }
}
