/* Deviations of Wine 8 from Windows, without any code of ours. Prints a line for each fault: its name, then
 * `there` or `gone`. The names are those of tools/xtask/src/windows/faults.rs; our acceptors tolerate the others. */
#include <stdio.h>
#include <winsock2.h>

static SOCKET acceptor, client;

/* A client whose connection waits to be accepted. */
static void connect_client(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int len = sizeof addr;
    acceptor = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    bind(acceptor, (struct sockaddr *)&addr, sizeof addr);
    listen(acceptor, 1);
    getsockname(acceptor, (struct sockaddr *)&addr, &len);
    client = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    connect(client, (struct sockaddr *)&addr, sizeof addr);
}

/* Ends the client's connection with RST and waits until it has arrived. */
static void reset(void)
{
    struct linger at_once = {1, 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, (char *)&at_once, sizeof at_once);
    closesocket(client);
    Sleep(200);
}

static void tell(const char *name, int there)
{
    printf("%s %s\n", name, there ? "there" : "gone");
}

int main(void)
{
    WSADATA data;
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return 1;

    /* recv gives 0; Windows: SOCKET_ERROR, WSAECONNRESET. */
    char octet;
    connect_client();
    SOCKET server = accept(acceptor, NULL, NULL);
    reset();
    tell("reset-is-an-end", recv(server, &octet, 1, 0) == 0);

    /* accept gives WSAENOTCONN, yet a socket if no address is asked for; Windows: a socket or WSAECONNRESET. */
    struct sockaddr_in from;
    int len = sizeof from;
    connect_client();
    reset();
    server = accept(acceptor, (struct sockaddr *)&from, &len);
    tell("accepting-needs-a-peer", server == INVALID_SOCKET && WSAGetLastError() == WSAENOTCONN);
    return 0;
}
