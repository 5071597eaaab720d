/* A server of calls with priorities, with the least cost: a thread for each connection, at the priority of its requests.
 *
 * `priorities-c ADDRESS OCTETS READER HIGH MICROSECONDS LOW MICROSECONDS SPIN MICROSECONDS [NEXT]` listens at ADDRESS, `tcp` (its
 * port is the line that it prints) or the path of a UNIX-domain socket (the line is `ready`). A request of OCTETS octets
 * begins with `h`, `l` or `s`, and its connection has requests of that kind alone: its thread takes the native priority
 * behind the kind's name, and computes for that processor time before it answers with OCTETS octets. Threads have the
 * priority READER until the first request has come. Priorities are of SCHED_FIFO; 0 is SCHED_OTHER. With NEXT, the port or
 * the path of another such server, it computes nothing, and each connection has one of its own there, which gets its
 * requests. It exits at the end of its input. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../loopback.h"

enum { LONGEST = 4096 };

struct kind {
    int priority;
    long work_nanos;
};

static size_t octets;
static struct kind high, low, spin;
static const char *next_address;

static long thread_nanos(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void take_priority(int priority) {
    struct sched_param parameters = {.sched_priority = priority};
    if (sched_setscheduler(0, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &parameters) < 0) die("sched_setscheduler");
}

static int transfer(int fd, char *buffer, int is_sent) {
    for (size_t done = 0; done < octets;) {
        ssize_t part = is_sent ? send(fd, buffer + done, octets - done, MSG_NOSIGNAL) : recv(fd, buffer + done, octets - done, 0);
        if (part <= 0 && !(part < 0 && errno == EINTR)) return 0;
        if (part > 0) done += (size_t)part;
    }
    return 1;
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path) die("path");
    strcpy(addr.sun_path, path);
    return addr;
}

static int connect_next(void) {
    struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int is_path = strchr(next_address, '/') != NULL, on = 1;
    int fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    if (is_path) {
        struct sockaddr_un addr = address_of(next_address);
        if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0) die("connect");
        return fd;
    }
    inet.sin_port = htons((unsigned short)atoi(next_address));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&inet, sizeof inet) < 0) die("connect");
    return fd;
}

static void *serve_connection(void *data) {
    char buffer[LONGEST];
    int fd = (int)(long)data, next = -1;
    struct kind *kind = NULL;
    while (transfer(fd, buffer, 0)) {
        if (!kind) {
            kind = buffer[0] == 'h' ? &high : buffer[0] == 'l' ? &low : &spin;
            take_priority(kind->priority);
            if (next_address) next = connect_next();
        }
        if (next >= 0) {
            if (!transfer(next, buffer, 1) || !transfer(next, buffer, 0)) break;
        } else {
            for (long end = thread_nanos() + kind->work_nanos; thread_nanos() < end;) {
            }
        }
        if (!transfer(fd, buffer, 1)) break;
    }
    if (next >= 0) close(next);
    close(fd);
    return NULL;
}

static void *accept_connections(void *data) {
    int listener = (int)(long)data, on = 1;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) die("accept");
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails for UNIX-domain sockets */
        if ((errno = pthread_create(&thread, NULL, serve_connection, (void *)(long)fd)) != 0) die("pthread_create");
        pthread_detach(thread);
    }
    return NULL;
}

static int listen_at(const char *path) {
    struct sockaddr_un addr = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, BACKLOG) < 0) die("listen");
    puts("ready");
    fflush(stdout);
    return fd;
}

static struct kind kind_of(char **words) {
    return (struct kind){atoi(words[0]), strtol(words[1], NULL, 10) * 1000};
}

int main(int argc, char **argv) {
    if (argc == 10 || argc == 11) {
        next_address = argv[10];
        octets = strtoul(argv[2], NULL, 10);
        high = kind_of(argv + 4), low = kind_of(argv + 6), spin = kind_of(argv + 8);
    }
    if (octets < 1 || octets > LONGEST) {
        fprintf(stderr, "usage: priorities-c tcp|PATH OCTETS READER HIGH MICROSECONDS LOW MICROSECONDS SPIN MICROSECONDS [NEXT]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    take_priority(atoi(argv[3]));
    int listener = strcmp(argv[1], "tcp") == 0 ? open_listener(0) : listen_at(argv[1]);
    pthread_t acceptor;
    if ((errno = pthread_create(&acceptor, NULL, accept_connections, (void *)(long)listener)) != 0) die("pthread_create");
    char rest[64];
    while (read(STDIN_FILENO, rest, sizeof rest) > 0) {
    }
    return 0;
}
