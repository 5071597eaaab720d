/* Event-driven by WSAEventSelect and WaitForMultipleObjects (section 4.2.1): one thread, an event object for
 * each socket. A wait takes at most 64 objects: further connections stay in the backlog until one of 63 has
 * closed. */
#include "server.h"

#include <string.h>

/* The listener has index 0 in both arrays. */
static WSAEVENT events[MAXIMUM_WAIT_OBJECTS];
static struct connection {
    struct session session;
    bool is_closing; /* FD_CLOSE has occurred, which is reported once */
} connections[MAXIMUM_WAIT_OBJECTS];
static DWORD count;

static void add(SOCKET socket, long interest) {
    events[count] = WSACreateEvent();
    if (events[count] == WSA_INVALID_EVENT) fail_socket("WSACreateEvent");
    /* This also makes the socket non-blocking. */
    if (WSAEventSelect(socket, events[count], interest) != 0) fail_socket("WSAEventSelect");
    connections[count].is_closing = false;
    count++;
}

static void remove_last(void) {
    count--;
    closesocket(connections[count].session.socket);
    WSACloseEvent(events[count]);
}

static void accept_one(SOCKET listener) {
    SOCKET connection = accept_connection(listener, NONBLOCKING);
    if (connection == INVALID_SOCKET) return;
    add(connection, FD_READ | FD_WRITE | FD_CLOSE);
    if (session_open(&connections[count - 1].session, connection) == INTEREST_NONE) remove_last();
}

/* Sends until all is sent, or a call would block: FD_WRITE occurs only after such a call. */
static enum interest flush(struct session *session) {
    int unsent;
    enum interest interest;
    do {
        unsent = session->unsent;
        interest = session_writable(session);
    } while (interest == INTEREST_WRITE && session->unsent < unsent);
    return interest;
}

/* Handles the events of the last connection. */
static void handle_last(void) {
    WSANETWORKEVENTS occurred;
    struct connection *connection = &connections[count - 1];
    struct session *session = &connection->session;
    if (WSAEnumNetworkEvents(session->socket, events[count - 1], &occurred) != 0) fail_socket("WSAEnumNetworkEvents");
    if (occurred.lNetworkEvents & FD_CLOSE) connection->is_closing = true;
    bool may_read = occurred.lNetworkEvents & (FD_READ | FD_CLOSE);
    enum interest interest = INTEREST_READ;
    if (session->unsent > 0) {
        interest = flush(session);
        may_read = true; /* an earlier FD_READ, which is not reported again without a reception */
    }
    while (interest == INTEREST_READ && may_read) {
        interest = session_readable(session);
        if (interest == INTEREST_WRITE) interest = flush(session);
        may_read = connection->is_closing; /* up to the end of the stream */
    }
    if (interest == INTEREST_NONE) remove_last();
}

/* Moves a connection behind all others: the wait reports the first one that is ready, and each shall have its
 * turn. */
static void move_to_end(DWORD i) {
    WSAEVENT event = events[i];
    struct connection connection = connections[i];
    memmove(&events[i], &events[i + 1], (count - 1 - i) * sizeof *events);
    memmove(&connections[i], &connections[i + 1], (count - 1 - i) * sizeof *connections);
    events[count - 1] = event;
    connections[count - 1] = connection;
}

void run_event_select(void) {
    SOCKET listener = open_listener();
    add(listener, FD_ACCEPT);
    announce(listener);
    for (;;) {
        DWORD first = count == MAXIMUM_WAIT_OBJECTS ? 1 : 0;
        DWORD result = WaitForMultipleObjects(count - first, events + first, FALSE, INFINITE);
        if (result >= WAIT_OBJECT_0 + count) fail("WaitForMultipleObjects", GetLastError());
        DWORD i = result - WAIT_OBJECT_0 + first;
        WSANETWORKEVENTS occurred;
        if (i > 0) {
            move_to_end(i);
            handle_last();
        } else if (WSAEnumNetworkEvents(listener, events[0], &occurred) != 0) {
            fail_socket("WSAEnumNetworkEvents");
        } else if (occurred.lNetworkEvents & FD_ACCEPT) {
            accept_one(listener);
        }
    }
}
