/* Event-driven by select (section 4.2): one thread, at most FD_SETSIZE descriptors. Further connections stay
 * in the backlog. */
#include "server.h"

#include <errno.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static fd_set reading, writing;
static int highest; /* descriptor in either set */

static void set_interest(int fd, enum interest interest) {
    if (interest == INTEREST_READ)
        FD_SET(fd, &reading);
    else
        FD_CLR(fd, &reading);
    if (interest == INTEREST_WRITE)
        FD_SET(fd, &writing);
    else
        FD_CLR(fd, &writing);
    if (interest != INTEREST_NONE) {
        if (fd > highest) highest = fd;
        return;
    }
    close(fd);
    while (!FD_ISSET(highest, &reading) && !FD_ISSET(highest, &writing)) highest--;
}

static void accept_one(int listener) {
    int fd = accept_connection(listener, SOCK_NONBLOCK);
    if (fd >= 0) set_interest(fd, session_open(fd));
}

void run_select(void) {
    int listener = open_listener(SOCK_NONBLOCK);
    limit_descriptors(FD_SETSIZE);
    init_sessions();
    FD_SET(listener, &reading);
    highest = listener;
    announce(listener);
    for (;;) {
        fd_set readable = reading, writable = writing;
        int ready = select(highest + 1, &readable, &writable, NULL, NULL);
        if (ready < 0 && errno != EINTR) fail("select");
        int last = highest;
        for (int fd = listener + 1; ready > 0 && fd <= last; fd++) {
            if (FD_ISSET(fd, &readable))
                set_interest(fd, session_readable(fd));
            else if (FD_ISSET(fd, &writable))
                set_interest(fd, session_writable(fd));
            else
                continue;
            ready--;
        }
        if (ready > 0) accept_one(listener); /* last, so that no new descriptor is taken for a ready one */
    }
}
