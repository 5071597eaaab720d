/* Asynchronous I/O by io_uring: one thread, one system call for all operations that are due.
 *
 * A reply and the reception of the next request are linked and submitted together. MSG_WAITALL makes each
 * result a whole one, or else the end of the connection. */
#include "server.h"

#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENTRIES = 4096 };

enum operation { ACCEPT, RECEIVE, SEND, CLOSE };

static struct io_uring ring;

static void create_ring(void) {
    /* These flags save interrupts; kernels before 6.1 refuse them. */
    int result = io_uring_queue_init(ENTRIES, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (result == -EINVAL) result = io_uring_queue_init(ENTRIES, &ring, 0);
    if (result == 0) return;
    errno = -result;
    fail("this kernel offers no io_uring");
}

/* Makes room for so many entries, which are then submitted together: a link does not span submissions. */
static void reserve(unsigned entries) {
    while (io_uring_sq_space_left(&ring) < entries)
        if (io_uring_submit(&ring) < 0) fail("io_uring_submit");
}

static void label(struct io_uring_sqe *entry, enum operation operation, int fd) {
    io_uring_sqe_set_data64(entry, (unsigned long long)operation << 32 | (unsigned)fd);
}

static void accept_all(int listener) {
    reserve(1);
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_prep_multishot_accept(entry, listener, NULL, NULL, SOCK_CLOEXEC);
    label(entry, ACCEPT, listener);
}

static void close_connection(int fd) {
    reserve(1);
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_prep_close(entry, fd);
    label(entry, CLOSE, fd);
}

/* Sends octets, if any, and then receives a request. If the octets cannot be sent, the reception is
 * cancelled. */
static void send_and_receive(int fd, const char *data, size_t len) {
    reserve(2);
    if (len > 0) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
        io_uring_prep_send(entry, fd, data, len, MSG_NOSIGNAL | MSG_WAITALL);
        entry->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
        label(entry, SEND, fd);
    }
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_prep_recv(entry, fd, session_of(fd)->request, REQUEST_OCTETS, MSG_WAITALL);
    label(entry, RECEIVE, fd);
}

static void accepted(int listener, int result, bool is_last) {
    if (result >= 0) {
        int on = 1;
        setsockopt(result, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        send_and_receive(result, GREETING, options.greeting ? sizeof GREETING : 0);
    } else if (result == -EINVAL) {
        errno = EINVAL;
        fail("this kernel offers no multishot accept");
    } else if (result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM) {
        pause_briefly();
    }
    if (is_last) accept_all(listener);
}

static void received(int fd, int result) {
    int octets = result == REQUEST_OCTETS ? parse_request(session_of(fd)->request) : -1;
    if (octets < 0)
        close_connection(fd);
    else
        send_and_receive(fd, reply, (size_t)octets);
}

void run_io_uring(void) {
    static struct io_uring_cqe *completions[MAX_EVENTS];
    int listener = open_listener(0);
    init_sessions();
    create_ring();
    accept_all(listener);
    announce(listener);
    for (;;) {
        int result = io_uring_submit_and_wait(&ring, 1);
        if (result < 0 && result != -EINTR && result != -EBUSY && result != -EAGAIN) {
            errno = -result;
            fail("io_uring_submit_and_wait");
        }
        unsigned count = io_uring_peek_batch_cqe(&ring, completions, MAX_EVENTS);
        for (unsigned i = 0; i < count; i++) {
            unsigned long long data = io_uring_cqe_get_data64(completions[i]);
            int fd = (int)(unsigned)data;
            enum operation operation = (enum operation)(data >> 32);
            if (operation == ACCEPT)
                accepted(fd, completions[i]->res, !(completions[i]->flags & IORING_CQE_F_MORE));
            else if (operation == RECEIVE)
                received(fd, completions[i]->res);
            else if (operation == SEND) /* it has failed, and its reception is not reported */
                close_connection(fd);
        }
        io_uring_cq_advance(&ring, count);
    }
}
