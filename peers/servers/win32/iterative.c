/* One connection after the other (section 4.1). */
#include "server.h"

void run_iterative(void) {
    SOCKET listener = open_listener();
    announce(listener);
    for (;;) serve(accept_connection(listener, BLOCKING));
}
