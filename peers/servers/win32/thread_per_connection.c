/* A thread for each connection (figure 4.12). */
#include "server.h"

static DWORD WINAPI work(void *argument) {
    serve((SOCKET)argument);
    return 0;
}

void run_thread_per_connection(void) {
    SOCKET listener = open_listener();
    announce(listener);
    for (;;) start_thread(work, (void *)accept_connection(listener, BLOCKING));
}
