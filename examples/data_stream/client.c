/* Sends its standard input to a server: `client [HOST [PORT]]`.
 *
 * The client of paper 000, figure 12, with getaddrinfo, poll, and errors that are looked at. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The milliseconds for a connection. */
enum { CONNECTING = 5000 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int connect_to(const struct addrinfo *address) {
    int fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd < 0) return -1;
    int flags = fcntl(fd, F_GETFL, 0);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    int error = 0;
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0) {
        socklen_t length = sizeof error;
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (errno != EINPROGRESS) error = errno;
        else if (poll(&ready, 1, CONNECTING) <= 0) error = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) error = errno;
    }
    if (error != 0) {
        close(fd);
        errno = error;
        return -1;
    }
    fcntl(fd, F_SETFL, flags);
    return fd;
}

static void send_data(int fd) {
    char buffer[8 << 10];
    ssize_t count;
    while ((count = read(0, buffer, sizeof buffer)) > 0) {
        for (ssize_t sent = 0; sent < count;) {
            ssize_t more = send(fd, buffer + sent, count - sent, MSG_NOSIGNAL);
            if (more < 0 && errno != EINTR) die("send");
            if (more > 0) sent += more;
        }
    }
    if (count < 0) die("read");
}

int main(int argc, char *argv[]) {
    const char *host = argc > 1 ? argv[1] : "127.0.0.1";
    const char *port = argc > 2 ? argv[2] : "10000";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
    int error = getaddrinfo(host, port, &hints, &addresses);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", host, gai_strerror(error));
        return 1;
    }
    int fd = -1;
    for (struct addrinfo *address = addresses; address && fd < 0; address = address->ai_next)
        fd = connect_to(address);
    freeaddrinfo(addresses);
    if (fd < 0) die("connect");
    send_data(fd);
    return close(fd) < 0;
}
