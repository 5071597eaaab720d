/* The service: a greeting, then for each request of four digits that many octets 'A', until the client
 * closes. A request with other characters ends the connection. The client closes first, so that TIME_WAIT is
 * on its side (section 4.1). */
#include "server.h"

#include <string.h>

char reply[MAX_REPLY];

void init_reply(void) { memset(reply, 'A', sizeof reply); }

int parse_request(const char request[REQUEST_OCTETS]) {
    int octets = 0;
    for (int i = 0; i < REQUEST_OCTETS; i++) {
        if (request[i] < '0' || request[i] > '9') return -1;
        octets = 10 * octets + (request[i] - '0');
    }
    return octets;
}

/* Sends all octets; returns false if the connection is broken. */
static bool send_all(SOCKET connection, const char *data, int len) {
    while (len > 0) {
        int sent = send(connection, data, len, 0);
        if (sent < 0) return false;
        data += sent;
        len -= sent;
    }
    return true;
}

/* Receives a whole request; returns false at the end of the connection. */
static bool receive_request(SOCKET connection, char request[REQUEST_OCTETS]) {
    int received = 0;
    while (received < REQUEST_OCTETS) {
        int octets = recv(connection, request + received, REQUEST_OCTETS - received, 0);
        if (octets <= 0) return false;
        received += octets;
    }
    return true;
}

void serve(SOCKET connection) {
    char request[REQUEST_OCTETS];
    if (!options.greeting || send_all(connection, GREETING, sizeof GREETING)) {
        while (receive_request(connection, request)) {
            int octets = parse_request(request);
            if (octets < 0 || !send_all(connection, reply, octets)) break;
        }
    }
    closesocket(connection);
}

enum interest session_open(struct session *session, SOCKET socket) {
    *session = (struct session){.socket = socket};
    /* The buffer of a new connection has room for the greeting. */
    if (options.greeting && send(socket, GREETING, sizeof GREETING, 0) != sizeof GREETING) return INTEREST_NONE;
    return INTEREST_READ;
}

enum interest session_readable(struct session *session) {
    int octets = recv(session->socket, session->request + session->received, REQUEST_OCTETS - session->received, 0);
    if (octets < 0 && WSAGetLastError() == WSAEWOULDBLOCK) return INTEREST_READ;
    if (octets <= 0) return INTEREST_NONE;
    session->received += octets;
    if (session->received < REQUEST_OCTETS) return INTEREST_READ;
    session->received = 0;
    session->unsent = parse_request(session->request);
    if (session->unsent < 0) return INTEREST_NONE;
    return session->unsent > 0 ? session_writable(session) : INTEREST_READ;
}

enum interest session_writable(struct session *session) {
    int sent = send(session->socket, reply, session->unsent, 0);
    if (sent < 0) return WSAGetLastError() == WSAEWOULDBLOCK ? INTEREST_WRITE : INTEREST_NONE;
    session->unsent -= sent;
    return session->unsent > 0 ? INTEREST_WRITE : INTEREST_READ;
}
