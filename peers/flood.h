/* What the programs of floods have in common: their arguments, the socket options and the clock.
 *
 *   PROGRAM receive HOST TYPE CALL ELEMENTS QUEUE          prints its port; then, once the sender has closed, the octets of
 *                                                          user data that it received
 *   PROGRAM transmit HOST PORT TYPE CALL ELEMENTS QUEUE    prints `ready` once it is connected; reads a number of buffers,
 *                                                          and prints the seconds from the first one until all have arrived
 *
 * TYPE is short, char, long, octet, double or struct; CALL is oneway or twoway; QUEUE has the octets of the sockets'
 * queues, 0 for those of the system. */
#ifndef FLOOD_H
#define FLOOD_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct bin_struct {
    short s;
    char c;
    int l;
    unsigned char o;
    double d;
};

enum data_type { SHORT_DATA, CHAR_DATA, LONG_DATA, OCTET_DATA, DOUBLE_DATA, STRUCT_DATA, DATA_TYPES };

struct flood {
    enum data_type type;
    int is_two_way;
    unsigned elements;
    size_t octets; /* of one buffer */
    int queue;
};

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

static inline struct flood read_flood(char **arguments) {
    static const char *const names[DATA_TYPES] = {"short", "char", "long", "octet", "double", "struct"};
    static const size_t sizes[DATA_TYPES] = {2, 1, 4, 1, 8, sizeof(struct bin_struct)};
    struct flood flood = {DATA_TYPES, strcmp(arguments[1], "twoway") == 0, (unsigned)strtoul(arguments[2], NULL, 10), 0,
                          atoi(arguments[3])};
    for (int type = 0; type < DATA_TYPES; type++)
        if (strcmp(arguments[0], names[type]) == 0)
            flood.type = (enum data_type)type;
    if (flood.type == DATA_TYPES || flood.elements == 0 || flood.elements > 64u << 20) {
        fprintf(stderr, "%s %s is no flood\n", arguments[0], arguments[2]);
        exit(2);
    }
    flood.octets = flood.elements * sizes[flood.type];
    return flood;
}

/* The elements of a buffer: octets that are not zero. */
static inline void *make_data(const struct flood *flood) {
    unsigned char *data = (unsigned char *)malloc(flood->octets);
    if (data == NULL)
        die("malloc");
    for (size_t octet = 0; octet < flood->octets; octet++)
        data[octet] = (unsigned char)(1 + octet % 63); /* doubles of any such octets are numbers */
    return data;
}

static inline void set_options(int fd, const struct flood *flood) {
    int yes = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0)
        die("TCP_NODELAY");
    if (flood->queue > 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &flood->queue, sizeof flood->queue) < 0 ||
                             setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &flood->queue, sizeof flood->queue) < 0))
        die("SO_SNDBUF, SO_RCVBUF");
}

static inline struct sockaddr_in to_address(const char *host, const char *port) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)atoi(port));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "%s is no IPv4 address\n", host);
        exit(2);
    }
    return address;
}

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void say_port(unsigned port) {
    printf("%u\n", port);
    fflush(stdout);
}

/* Carries out the floods that standard input names. */
static inline void run_floods(void (*send_buffers)(unsigned long count)) {
    unsigned long buffers;
    puts("ready");
    fflush(stdout);
    while (scanf("%lu", &buffers) == 1) {
        double start = now();
        send_buffers(buffers);
        printf("%.9f\n", now() - start);
        fflush(stdout);
    }
}

#endif
