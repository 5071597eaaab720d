/* Event-driven by poll: one thread, any number of descriptors. */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct pollfd *polled; /* the listener, then all connections without gaps */
static nfds_t count, capacity;

static void add(int fd, short events) {
    if (count == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        polled = realloc(polled, capacity * sizeof *polled);
        if (!polled) fail("realloc");
    }
    polled[count++] = (struct pollfd){.fd = fd, .events = events};
}

static void accept_one(int listener) {
    int fd = accept_connection(listener, SOCK_NONBLOCK);
    if (fd < 0) return;
    if (session_open(fd) == INTEREST_READ)
        add(fd, POLLIN);
    else
        close(fd);
}

/* Handles a ready connection; returns false if it has been closed. */
static bool handle(struct pollfd *entry) {
    enum interest interest = entry->events & POLLOUT ? session_writable(entry->fd) : session_readable(entry->fd);
    if (interest == INTEREST_NONE) {
        close(entry->fd);
        return false;
    }
    entry->events = interest == INTEREST_WRITE ? POLLOUT : POLLIN;
    return true;
}

void run_poll(void) {
    int listener = open_listener(SOCK_NONBLOCK);
    init_sessions();
    add(listener, POLLIN);
    announce(listener);
    for (;;) {
        int ready = poll(polled, count, -1);
        if (ready < 0 && errno != EINTR) fail("poll");
        for (nfds_t i = 1; ready > 0 && i < count;) {
            if (polled[i].revents != 0) {
                ready--;
                if (!handle(&polled[i])) {
                    polled[i] = polled[--count]; /* which is looked at next */
                    continue;
                }
            }
            i++;
        }
        if (ready > 0) accept_one(listener);
    }
}
