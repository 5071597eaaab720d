/* Leader/followers: a pool of threads that share one epoll set. The leader waits for one event. It then gives
 * up the leadership (the mutex), handles the event, and becomes a follower, which waits for the mutex.
 * EPOLLONESHOT deactivates the handle of a connection while a thread handles it. */
#include "server.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t leadership = PTHREAD_MUTEX_INITIALIZER;
static int epoll_fd, listener;

static void activate(int operation, int fd, enum interest interest) {
    struct epoll_event event = {.data.fd = fd};
    event.events = EPOLLONESHOT | (interest == INTEREST_WRITE ? EPOLLOUT : EPOLLIN);
    if (interest == INTEREST_NONE)
        close(fd);
    else if (epoll_ctl(epoll_fd, operation, fd, &event) < 0)
        fail("epoll_ctl");
}

_Noreturn static void *work(void *unused) {
    (void)unused;
    for (;;) {
        struct epoll_event event;
        int accepted = -1;
        pthread_mutex_lock(&leadership);
        int ready = epoll_wait(epoll_fd, &event, 1, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        /* The leader itself accepts: a new leader would find the same connection pending. */
        bool is_listener = ready == 1 && event.data.fd == listener;
        if (is_listener) accepted = accept_connection(listener, SOCK_NONBLOCK);
        pthread_mutex_unlock(&leadership);
        if (accepted >= 0)
            activate(EPOLL_CTL_ADD, accepted, session_open(accepted));
        else if (ready == 1 && !is_listener) {
            int fd = event.data.fd;
            activate(EPOLL_CTL_MOD, fd, session_of(fd)->unsent > 0 ? session_writable(fd) : session_readable(fd));
        }
    }
}

void run_leader_followers(void) {
    listener = open_listener(SOCK_NONBLOCK);
    init_sessions();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) fail("epoll_create1");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) < 0) fail("epoll_ctl");
    for (unsigned i = 0; i < options.workers; i++) start_thread(work, NULL);
    announce(listener);
    wait_for_ever();
}
