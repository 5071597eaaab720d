/* The service of paper 004 (section 4.1, with the greeting of 5.5.3) over POSIX calls, in the server
 * architecture that the command line names. */
#include "server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options options = {.host = "127.0.0.1", .port = 0, .workers = 10, .greeting = true};

static const struct {
    const char *name;
    void (*run)(void);
} architectures[] = {
    {"iterative", run_iterative},
    {"select", run_select},
    {"poll", run_poll},
    {"epoll", run_epoll},
    {"process-per-connection", run_process_per_connection},
    {"pre-forked", run_pre_forked},
    {"thread-per-connection", run_thread_per_connection},
    {"accept-pool", run_accept_pool},
    {"accept-pool-mutex", run_accept_pool_mutex},
    {"queue-pool", run_queue_pool},
    {"leader-followers", run_leader_followers},
    {"io-uring", run_io_uring},
};
enum { COUNT = sizeof architectures / sizeof architectures[0] };

static const char usage[] = "usage: posix ARCHITECTURE|--list [--port N] [--host ADDRESS] [--workers N]"
                            " [--no-greeting] [--until-stdin-closes]";

static void (*find(const char *name))(void) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(architectures[i].name, name) == 0) return architectures[i].run;
    fprintf(stderr, "posix: unknown architecture `%s`; there are:", name);
    for (int i = 0; i < COUNT; i++) fprintf(stderr, " %s", architectures[i].name);
    fputc('\n', stderr);
    exit(2);
}

static unsigned number(const char *option, const char *text, unsigned min, unsigned max) {
    char *end = NULL;
    errno = 0;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end || errno || value < min || value > max) {
        fprintf(stderr, "posix: %s takes a number from %u to %u\n", option, min, max);
        exit(2);
    }
    return (unsigned)value;
}

static void *end_with_stdin(void *unused) {
    (void)unused;
    char buffer[64];
    ssize_t octets;
    sigset_t sigterm; /* the main thread handles it, which forks no more children then */
    sigemptyset(&sigterm);
    sigaddset(&sigterm, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &sigterm, NULL);
    while ((octets = read(STDIN_FILENO, buffer, sizeof buffer)) > 0 || (octets < 0 && errno == EINTR)) {}
    kill(getpid(), SIGTERM);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < COUNT; i++) puts(architectures[i].name);
        return 0;
    }
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "%s\n", usage);
        return 2;
    }
    void (*run)(void) = find(argv[1]);
    bool until_stdin_closes = false;
    for (int i = 2; i < argc; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--no-greeting") == 0)
            options.greeting = false;
        else if (strcmp(option, "--until-stdin-closes") == 0)
            until_stdin_closes = true;
        else if (strcmp(option, "--port") == 0)
            options.port = number(option, argv[++i], 0, 65535);
        else if (strcmp(option, "--workers") == 0)
            options.workers = number(option, argv[++i], 1, MAX_WORKERS);
        else if (strcmp(option, "--host") == 0 && argv[i + 1])
            options.host = argv[++i];
        else {
            fprintf(stderr, "%s\n", usage);
            return 2;
        }
    }
    handle_sigterm();
    init_reply();
    if (until_stdin_closes) start_thread(end_with_stdin, NULL);
    run();
}
