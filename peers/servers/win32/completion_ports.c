/* Overlapped I/O with a completion port and AcceptEx: a pool of threads, which take completed operations.
 *
 * Without a greeting AcceptEx also receives the first octets of the request, which avoids the race of section
 * 5.5.2. A client that sends none then occupies one of the pending accepts until it closes. */
#include "server.h"

#include <mswsock.h>
#include <stdlib.h>
#include <string.h>

enum {
    PENDING_ACCEPTS = 128,
    ADDRESS_OCTETS = sizeof(struct sockaddr_in) + 16, /* by the documentation of AcceptEx */
};

/* One connection, with the one operation that is pending on it. */
struct connection {
    OVERLAPPED overlapped; /* first, so that its address is the connection's */
    enum { ACCEPT, GREET, RECEIVE, SEND } operation;
    struct session session;
    char accepted[REQUEST_OCTETS + 2 * ADDRESS_OCTETS]; /* octets, and the addresses of both ends */
};

static HANDLE port;
static SOCKET listener;
static LPFN_ACCEPTEX accept_ex;

static void load_accept_ex(void) {
    GUID id = WSAID_ACCEPTEX;
    DWORD octets;
    if (WSAIoctl(listener, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, &accept_ex, sizeof accept_ex, &octets, NULL,
                 NULL) != 0)
        fail_socket("AcceptEx");
}

/* Begins to accept one more connection. Without free handles or memory it waits and tries again. */
static void begin_accept(void) {
    struct connection *connection;
    while (!(connection = calloc(1, sizeof *connection))) pause_briefly();
    connection->operation = ACCEPT;
    for (;;) {
        DWORD octets, wanted = options.greeting ? 0 : REQUEST_OCTETS;
        SOCKET socket = connection->session.socket = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED);
        if (socket != INVALID_SOCKET) {
            if (accept_ex(listener, socket, connection->accepted, wanted, ADDRESS_OCTETS, ADDRESS_OCTETS, &octets,
                          &connection->overlapped) ||
                WSAGetLastError() == ERROR_IO_PENDING)
                return; /* a completion follows in both cases */
        }
        int error = WSAGetLastError();
        if (socket != INVALID_SOCKET) closesocket(socket);
        if (error != WSAECONNRESET && error != WSAEMFILE && error != WSAENOBUFS) fail("AcceptEx", (DWORD)error);
        pause_briefly();
    }
}

static void end(struct connection *connection) {
    closesocket(connection->session.socket);
    free(connection);
}

static bool is_pending(int result) { return result == 0 || WSAGetLastError() == WSA_IO_PENDING; }

static bool begin_receive(struct connection *connection) {
    struct session *session = &connection->session;
    WSABUF buffer = {(ULONG)(REQUEST_OCTETS - session->received), session->request + session->received};
    DWORD flags = 0;
    connection->operation = RECEIVE;
    return is_pending(WSARecv(session->socket, &buffer, 1, NULL, &flags, &connection->overlapped, NULL));
}

static bool begin_send(struct connection *connection, int operation, char *data, int octets) {
    WSABUF buffer = {(ULONG)octets, data};
    connection->operation = operation;
    return is_pending(WSASend(connection->session.socket, &buffer, 1, NULL, 0, &connection->overlapped, NULL));
}

/* Counts received octets, and begins the next operation. */
static bool received(struct connection *connection, int octets) {
    struct session *session = &connection->session;
    session->received += octets;
    if (session->received < REQUEST_OCTETS) return begin_receive(connection);
    session->received = 0;
    session->unsent = parse_request(session->request);
    if (session->unsent < 0) return false;
    return session->unsent > 0 ? begin_send(connection, SEND, reply, session->unsent) : begin_receive(connection);
}

static bool accepted(struct connection *connection, int octets) {
    static char greeting[] = GREETING;
    SOCKET socket = connection->session.socket;
    setsockopt(socket, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, (const char *)&listener, sizeof listener);
    set_nodelay(socket);
    if (!CreateIoCompletionPort((HANDLE)socket, port, 0, 0)) return false;
    if (options.greeting) return begin_send(connection, GREET, greeting, sizeof greeting);
    if (octets == 0) return false; /* the client has closed */
    memcpy(connection->session.request, connection->accepted, (size_t)octets);
    return received(connection, octets);
}

/* Handles a completed operation; returns false if the connection is to be closed. */
static bool handle(struct connection *connection, int octets) {
    struct session *session = &connection->session;
    switch (connection->operation) {
    case ACCEPT:
        return accepted(connection, octets);
    case GREET:
        return octets == sizeof GREETING && begin_receive(connection);
    case RECEIVE:
        return octets > 0 && received(connection, octets);
    case SEND:
        session->unsent -= octets;
        return session->unsent > 0 ? begin_send(connection, SEND, reply, session->unsent) : begin_receive(connection);
    }
    return false;
}

static DWORD WINAPI work(void *unused) {
    (void)unused;
    for (;;) {
        DWORD octets;
        ULONG_PTR key;
        OVERLAPPED *overlapped = NULL;
        BOOL has_succeeded = GetQueuedCompletionStatus(port, &octets, &key, &overlapped, INFINITE);
        if (!overlapped) fail("GetQueuedCompletionStatus", GetLastError());
        struct connection *connection = (struct connection *)overlapped;
        if (connection->operation == ACCEPT) begin_accept(); /* the number of pending accepts stays the same */
        if (!has_succeeded || !handle(connection, (int)octets)) end(connection);
    }
}

void run_completion_ports(void) {
    listener = open_listener();
    load_accept_ex();
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, options.workers);
    if (!port || !CreateIoCompletionPort((HANDLE)listener, port, 0, 0)) fail("CreateIoCompletionPort", GetLastError());
    for (int i = 0; i < PENDING_ACCEPTS; i++) begin_accept();
    for (unsigned i = 0; i < options.workers; i++) start_thread(work, NULL);
    announce(listener);
    Sleep(INFINITE);
}
