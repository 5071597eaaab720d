/* A pool of threads that compete for accept (figure 4.17). */
#include "server.h"

_Noreturn static DWORD WINAPI work(void *argument) {
    SOCKET listener = (SOCKET)argument;
    for (;;) serve(accept_connection(listener, BLOCKING));
}

void run_accept_pool(void) {
    SOCKET listener = open_listener();
    for (unsigned i = 0; i < options.workers; i++) start_thread(work, (void *)listener);
    announce(listener);
    Sleep(INFINITE);
}
