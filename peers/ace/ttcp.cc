// Floods over ACE's socket wrappers: the C++ version of papers 000 and 001.
#include <ace/INET_Addr.h>
#include <ace/SOCK_Acceptor.h>
#include <ace/SOCK_Connector.h>
#include <ace/SOCK_Stream.h>

#include "../flood.h"

// Octets of the answer to a two-way buffer, and of the receiver's buffer: as the other mechanisms have them.
enum { ANSWER_OCTETS = 24, RECEIVE_OCTETS = 64 << 10 };

static struct flood the_flood;
static ACE_SOCK_Stream stream;
static void *data;

static void check(bool is_done, const char *action) {
    if (!is_done)
        die(action);
}

static void receive(const char *host) {
    ACE_SOCK_Acceptor acceptor;
    check(acceptor.open(ACE_INET_Addr((u_short)0, host), 1) == 0, "listen");
    set_options(acceptor.get_handle(), &the_flood); // connections inherit them
    ACE_INET_Addr address;
    check(acceptor.get_local_addr(address) == 0, "address");
    say_port(address.get_port_number());
    check(acceptor.accept(stream) == 0, "accept");
    set_options(stream.get_handle(), &the_flood);
    char answer[ANSWER_OCTETS] = {1};
    check(stream.send_n(answer, 1) == 1, "greet");
    unsigned long long received = 0;
    size_t octets = RECEIVE_OCTETS;
    if (the_flood.is_two_way && the_flood.octets > octets)
        octets = the_flood.octets;
    char *buffer = (char *)malloc(octets);
    check(buffer != NULL, "malloc");
    for (;;) {
        ssize_t count = the_flood.is_two_way ? stream.recv_n(buffer, the_flood.octets) : stream.recv(buffer, octets);
        check(count >= 0, "receive");
        if (count == 0)
            break;
        received += (unsigned long long)count;
        if (the_flood.is_two_way)
            check(stream.send_n(answer, sizeof answer) == sizeof answer, "answer");
    }
    stream.send_n(answer, 1);
    stream.close();
    printf("%llu\n", received);
}

// One flood a connection: its end is that of the sender's half.
static void send_buffers(unsigned long count) {
    char answer[ANSWER_OCTETS];
    for (unsigned long buffer = 0; buffer < count; buffer++) {
        check(stream.send_n(data, the_flood.octets) == (ssize_t)the_flood.octets, "send");
        if (the_flood.is_two_way)
            check(stream.recv_n(answer, sizeof answer) == sizeof answer, "answer");
    }
    check(stream.close_writer() == 0, "close");
    check(stream.recv_n(answer, 1) == 1, "acknowledgement");
}

static void transmit(const char *host, const char *port) {
    ACE_SOCK_Connector connector;
    check(connector.connect(stream, ACE_INET_Addr((u_short)atoi(port), host)) == 0, "connect");
    set_options(stream.get_handle(), &the_flood);
    data = make_data(&the_flood);
    char greeting;
    check(stream.recv_n(&greeting, 1) == 1, "greeting");
    run_floods(send_buffers);
}

int main(int count, char **arguments) {
    if (count == 7 && strcmp(arguments[1], "receive") == 0) {
        the_flood = read_flood(arguments + 3);
        receive(arguments[2]);
    } else if (count == 8 && strcmp(arguments[1], "transmit") == 0) {
        the_flood = read_flood(arguments + 4);
        transmit(arguments[2], arguments[3]);
    } else {
        fprintf(stderr, "usage: see peers/flood.h\n");
        return 2;
    }
    return 0;
}
