/* A pool of processes, each of which accepts connections (section 4.3.1). A child that crashes is
 * replaced. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_child(int listener, pid_t parent) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child > 0) return;
    /* The child also ends when its parent is killed; a parent that ended before this call has another id. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail("prctl");
    if (getppid() != parent) _exit(1);
    for (;;) serve(accept_connection(listener, 0));
}

void run_pre_forked(void) {
    own_children();
    int listener = open_listener(0);
    pid_t parent = getpid();
    for (unsigned i = 0; i < options.workers; i++) start_child(listener, parent);
    announce(listener);
    for (;;) {
        if (waitpid(-1, NULL, 0) > 0)
            start_child(listener, parent);
        else if (errno != EINTR)
            fail("waitpid");
    }
}
