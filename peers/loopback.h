/* What the plain C servers have in common: a listener on the loopback interface, and the end after an error. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { BACKLOG = 4096 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* Listens, and prints the port on one line. `flags`: SOCK_NONBLOCK or 0. */
static int open_listener(int flags) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        die("listen");
    printf("%u\n", ntohs(addr.sin_port));
    fflush(stdout);
    return fd;
}

#endif
