/* The service of paper 004 (section 4.1, with the greeting of 5.5.3) over the Windows API, in the server
 * architecture that the command line names. */
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {.host = "127.0.0.1", .port = 0, .workers = 10, .greeting = true};

static const struct {
    const char *name;
    void (*run)(void);
} architectures[] = {
    {"iterative", run_iterative},
    {"select", run_select},
    {"event-select", run_event_select},
    {"thread-per-connection", run_thread_per_connection},
    {"accept-pool", run_accept_pool},
    {"completion-ports", run_completion_ports},
};
enum { COUNT = sizeof architectures / sizeof architectures[0] };

static const char usage[] = "usage: win32 ARCHITECTURE|--list [--port N] [--host ADDRESS] [--workers N]"
                            " [--no-greeting] [--until-stdin-closes]";

static void (*find(const char *name))(void) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(architectures[i].name, name) == 0) return architectures[i].run;
    fprintf(stderr, "win32: unknown architecture `%s`; there are:", name);
    for (int i = 0; i < COUNT; i++) fprintf(stderr, " %s", architectures[i].name);
    fputc('\n', stderr);
    exit(2);
}

static unsigned number(const char *option, const char *text, unsigned min, unsigned max) {
    char *end = NULL;
    errno = 0;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end || errno || value < min || value > max) {
        fprintf(stderr, "win32: %s takes a number from %u to %u\n", option, min, max);
        exit(2);
    }
    return (unsigned)value;
}

static DWORD WINAPI end_with_stdin(void *unused) {
    (void)unused;
    char buffer[64];
    DWORD octets;
    while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), buffer, sizeof buffer, &octets, NULL) && octets > 0) {}
    ExitProcess(0);
}

/* Ctrl-C and the like, the nearest that Windows has to SIGTERM. */
static BOOL WINAPI end_with_console(DWORD event) {
    (void)event;
    ExitProcess(0);
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
    WSADATA data;
    int error = WSAStartup(MAKEWORD(2, 2), &data);
    if (error != 0) fail("WSAStartup", (DWORD)error);
    init_reply();
    SetConsoleCtrlHandler(end_with_console, TRUE);
    if (until_stdin_closes) start_thread(end_with_stdin, NULL);
    run();
}
