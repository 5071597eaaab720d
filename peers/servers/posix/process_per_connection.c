/* A process for each connection (section 4.3.1). Children are waited for, so that their CPU time counts. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int signal_number) {
    (void)signal_number;
    int saved = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    errno = saved;
}

void run_process_per_connection(void) {
    struct sigaction action = {.sa_handler = reap, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    own_children();
    int listener = open_listener(0);
    if (sigaction(SIGCHLD, &action, NULL) < 0) fail("sigaction");
    announce(listener);
    for (;;) {
        int fd = accept_connection(listener, 0);
        pid_t child;
        while ((child = fork()) < 0) {
            if (errno != EAGAIN && errno != ENOMEM) fail("fork");
            pause_briefly(); /* until children have ended */
        }
        if (child == 0) {
            close(listener);
            serve(fd);
            _exit(0);
        }
        close(fd);
    }
}
