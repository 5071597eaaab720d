/* A pool of threads that compete for accept (figure 4.17), without a lock or with a mutex around accept. */
#include "server.h"

#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

_Noreturn static void *work(void *argument) {
    int listener = (int)(intptr_t)argument;
    for (;;) serve(accept_connection(listener, 0));
}

_Noreturn static void *work_with_mutex(void *argument) {
    int listener = (int)(intptr_t)argument;
    for (;;) {
        pthread_mutex_lock(&mutex);
        int fd = accept_connection(listener, 0);
        pthread_mutex_unlock(&mutex);
        serve(fd);
    }
}

static void run(void *(*worker)(void *)) {
    int listener = open_listener(0);
    for (unsigned i = 0; i < options.workers; i++) start_thread(worker, (void *)(intptr_t)listener);
    announce(listener);
    wait_for_ever();
}

void run_accept_pool(void) { run(work); }
void run_accept_pool_mutex(void) { run(work_with_mutex); }
