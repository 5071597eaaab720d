/* A sender of media flows with the least cost: one thread that sends packets of RTP at times that are fixed before.
 *
 * `media-c PORT FLOWS RATE OCTETS` sends FLOWS flows of RATE packets a second to a port of the loopback interface, each
 * packet with OCTETS octets behind its header. It prints `ready`, starts at the first line of its input, and exits at the
 * end of its input. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 12, LONGEST = 1400, MOST_FLOWS = 10000, VERSION = 0x80, MARKER_AND_TYPE = 0x80 | 96, CLOCK_RATE = 90000 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void wait_until(long long nanos) {
    struct timespec time = {.tv_sec = nanos / 1000000000, .tv_nsec = nanos % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

/* Whether the input has ended, without a wait. */
static int has_ended(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char buffer[64];
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, buffer, sizeof buffer) <= 0;
}

int main(int argc, char **argv) {
    long port = argc == 5 ? atol(argv[1]) : 0, flows = argc == 5 ? atol(argv[2]) : 0, rate = argc == 5 ? atol(argv[3]) : 0;
    long octets = argc == 5 ? atol(argv[4]) : 0;
    if (port < 1 || port > 65535 || flows < 1 || flows > MOST_FLOWS || rate < 1 || rate > 1000 || octets < 0 || octets > LONGEST) {
        fputs("usage: media-c PORT FLOWS RATE OCTETS\n", stderr);
        return 2;
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int *sockets = calloc((size_t)flows, sizeof *sockets);
    if (!sockets) die("calloc");
    for (long flow = 0; flow < flows; flow++) {
        sockets[flow] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (sockets[flow] < 0 || connect(sockets[flow], (struct sockaddr *)&to, sizeof to) < 0) die("socket");
    }
    puts("ready");
    fflush(stdout);
    char line[64];
    if (!fgets(line, sizeof line, stdin)) return 0;

    static unsigned char packet[HEADER + LONGEST];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long begin = now.tv_sec * 1000000000LL + now.tv_nsec, period = 1000000000LL / rate;
    for (uint32_t number = 0; !has_ended(); number++)
        for (long flow = 0; flow < flows; flow++) {
            wait_until(begin + number * period + flow * period / flows);
            uint16_t sequence = htons((uint16_t)number);
            uint32_t timestamp = htonl(number * (uint32_t)(CLOCK_RATE / rate)), source = htonl((uint32_t)flow + 1);
            packet[0] = VERSION;
            packet[1] = MARKER_AND_TYPE;
            memcpy(packet + 2, &sequence, 2);
            memcpy(packet + 4, &timestamp, 4);
            memcpy(packet + 8, &source, 4);
            if (send(sockets[flow], packet, (size_t)(HEADER + octets), 0) < 0 && errno != ECONNREFUSED) die("send");
        }
    return 0;
}
