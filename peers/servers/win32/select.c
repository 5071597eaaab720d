/* Event-driven by select (section 4.2): one thread, at most FD_SETSIZE sockets. */
#include "server.h"

static struct session sessions[FD_SETSIZE - 1];
static enum interest interests[FD_SETSIZE - 1];
static int count;

static void accept_one(SOCKET listener) {
    SOCKET connection = accept_connection(listener, NONBLOCKING);
    if (connection == INVALID_SOCKET) return;
    set_nonblocking(connection);
    interests[count] = session_open(&sessions[count], connection);
    if (interests[count] == INTEREST_READ)
        count++;
    else
        closesocket(connection);
}

/* Handles a ready connection. */
static void handle(int i) {
    struct session *session = &sessions[i];
    interests[i] = interests[i] == INTEREST_WRITE ? session_writable(session) : session_readable(session);
    if (interests[i] != INTEREST_NONE) return;
    closesocket(session->socket);
    sessions[i] = sessions[--count];
    interests[i] = interests[count];
}

/* The same as FD_SET, without its search for duplicates: a set of Windows is an array of sockets. */
static void add(fd_set *set, SOCKET socket) { set->fd_array[set->fd_count++] = socket; }

void run_select(void) {
    static fd_set reading, writing;
    SOCKET listener = open_listener();
    set_nonblocking(listener);
    announce(listener);
    for (;;) {
        FD_ZERO(&reading);
        FD_ZERO(&writing);
        if (count < FD_SETSIZE - 1) add(&reading, listener); /* else connections stay in the backlog */
        for (int i = 0; i < count; i++) add(interests[i] == INTEREST_WRITE ? &writing : &reading, sessions[i].socket);
        int ready = select(0, &reading, &writing, NULL, NULL);
        if (ready < 0) fail_socket("select");
        bool has_connection = FD_ISSET(listener, &reading);
        if (has_connection) ready--;
        /* From the last one, since `handle` moves the last one into a gap. */
        for (int i = count - 1; ready > 0 && i >= 0; i--) {
            if (!FD_ISSET(sessions[i].socket, interests[i] == INTEREST_WRITE ? &writing : &reading)) continue;
            ready--;
            handle(i);
        }
        if (has_connection) accept_one(listener);
    }
}
