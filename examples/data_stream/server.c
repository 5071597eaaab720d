/* Writes what clients send to standard output, one after the other: `server [PORT]`.
 *
 * The server of paper 000, figure 13, with IPv6, getnameinfo, and errors that are looked at. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void write_all(const char *buffer, ssize_t count) {
    for (ssize_t written = 0; written < count;) {
        ssize_t more = write(1, buffer + written, count - written);
        if (more < 0 && errno != EINTR) die("write");
        if (more > 0) written += more;
    }
}

/* Prints all data of a connection; returns its length, or -1. */
static long long print(int fd) {
    char buffer[8 << 10];
    long long octets = 0;
    for (;;) {
        ssize_t count = recv(fd, buffer, sizeof buffer, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count < 0 ? -1 : octets;
        write_all(buffer, count);
        octets += count;
    }
}

int main(int argc, char *argv[]) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    address.sin6_port = htons(argc > 1 ? atoi(argv[1]) : 10000);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET6, SOCK_STREAM, 0), on = 1;
    if (fd < 0) die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 5) < 0) die("listen");
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) die("getsockname");
    fprintf(stderr, "listening at port %u\n", ntohs(address.sin6_port));
    for (;;) {
        struct sockaddr_storage peer;
        socklen_t peer_length = sizeof peer;
        int stream = accept(fd, (struct sockaddr *)&peer, &peer_length);
        if (stream < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (stream < 0) die("accept");
        char host[NI_MAXHOST] = "a client";
        getnameinfo((struct sockaddr *)&peer, peer_length, host, sizeof host, NULL, 0, NI_NUMERICHOST);
        fprintf(stderr, "%s connected\n", host);
        long long octets = print(stream);
        if (octets < 0) perror(host);
        else fprintf(stderr, "%s sent %lld octets\n", host, octets);
        close(stream);
    }
}
