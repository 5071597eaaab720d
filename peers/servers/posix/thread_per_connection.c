/* A thread for each connection (figure 4.12). */
#include "server.h"

#include <stdint.h>

static void *work(void *argument) {
    serve((int)(intptr_t)argument);
    return NULL;
}

void run_thread_per_connection(void) {
    int listener = open_listener(0);
    announce(listener);
    for (;;) start_thread(work, (void *)(intptr_t)accept_connection(listener, 0));
}
