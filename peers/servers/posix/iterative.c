/* One connection after the other (section 4.1). */
#include "server.h"

void run_iterative(void) {
    int listener = open_listener(0);
    announce(listener);
    for (;;) serve(accept_connection(listener, 0));
}
