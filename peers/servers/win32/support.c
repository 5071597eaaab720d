/* The listening socket, errors and threads: the parts that all architectures need. */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MILLISECONDS = 10 };

_Noreturn void fail(const char *operation, DWORD error) {
    char text[256] = "";
    DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK;
    FormatMessageA(flags, NULL, error, 0, text, sizeof text, NULL);
    fprintf(stderr, "win32: %s: %s(error %lu)\n", operation, text, (unsigned long)error);
    exit(1);
}

_Noreturn void fail_socket(const char *operation) { fail(operation, (DWORD)WSAGetLastError()); }

SOCKET open_listener(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)options.port)};
    address.sin_addr.s_addr = inet_addr(options.host);
    if (address.sin_addr.s_addr == INADDR_NONE) {
        fprintf(stderr, "win32: `%s` is not an IPv4 address\n", options.host);
        exit(2);
    }
    /* No SO_REUSEADDR: on Windows it would let another process take the port. */
    SOCKET listener = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED);
    if (listener == INVALID_SOCKET) fail_socket("socket");
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, BACKLOG) != 0) {
        char operation[64];
        snprintf(operation, sizeof operation, "cannot listen on %s:%u", options.host, options.port);
        fail_socket(operation);
    }
    return listener;
}

void announce(SOCKET listener) {
    struct sockaddr_in address;
    int len = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &len) != 0) fail_socket("getsockname");
    printf("listening %s:%u\n", options.host, ntohs(address.sin_port));
    if (fflush(stdout) != 0) fail("cannot write to the standard output", GetLastError());
}

void set_nodelay(SOCKET connection) {
    BOOL on = TRUE;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof on);
}

void set_nonblocking(SOCKET socket) {
    u_long on = 1;
    if (ioctlsocket(socket, FIONBIO, &on) != 0) fail_socket("ioctlsocket");
}

SOCKET accept_connection(SOCKET listener, enum mode mode) {
    for (;;) {
        SOCKET connection = accept(listener, NULL, NULL);
        if (connection != INVALID_SOCKET) {
            set_nodelay(connection);
            return connection;
        }
        switch (WSAGetLastError()) {
        case WSAEWOULDBLOCK:
            return INVALID_SOCKET;
        case WSAEMFILE:
        case WSAENOBUFS:
            pause_briefly(); /* the connection stays in the backlog */
            if (mode == NONBLOCKING) return INVALID_SOCKET;
            break;
        case WSAECONNRESET:
        case WSAEINTR:
            break;
        default:
            fail_socket("accept");
        }
    }
}

void pause_briefly(void) { Sleep(RETRY_MILLISECONDS); }

void start_thread(LPTHREAD_START_ROUTINE function, void *argument) {
    HANDLE thread;
    while (!(thread = CreateThread(NULL, STACK_OCTETS, function, argument, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL)))
        pause_briefly();
    CloseHandle(thread);
}
