/* An acceptor thread, a bounded queue of connections, and a pool of threads that take them (figure 4.13). */
#include "server.h"

#include <pthread.h>

enum { CAPACITY = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queue[CAPACITY]; /* a ring */
static size_t first, count;

static void enqueue(int fd) {
    pthread_mutex_lock(&mutex);
    while (count == CAPACITY) pthread_cond_wait(&not_full, &mutex);
    queue[(first + count++) % CAPACITY] = fd;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&not_empty);
}

static int dequeue(void) {
    pthread_mutex_lock(&mutex);
    while (count == 0) pthread_cond_wait(&not_empty, &mutex);
    int fd = queue[first];
    first = (first + 1) % CAPACITY;
    bool was_full = count-- == CAPACITY;
    pthread_mutex_unlock(&mutex);
    if (was_full) pthread_cond_signal(&not_full); /* one thread enqueues */
    return fd;
}

_Noreturn static void *work(void *unused) {
    (void)unused;
    for (;;) serve(dequeue());
}

void run_queue_pool(void) {
    int listener = open_listener(0);
    for (unsigned i = 0; i < options.workers; i++) start_thread(work, NULL);
    announce(listener);
    for (;;) enqueue(accept_connection(listener, 0));
}
