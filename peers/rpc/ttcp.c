/* Floods over TI-RPC with the stubs of rpcgen: the RPC versions of paper 001, 2.2. */
#include <rpc/rpc.h>

#include "../flood.h"
#include "ttcp.h"

/* Octets of the buffers of records: what the paper's library used for its writes. */
enum { RECORD_OCTETS = 9000 };

static struct flood flood;

/* A sequence of any type: all of them have these two members. */
typedef LongSeq Sequence;

static const xdrproc_t filters[DATA_TYPES] = {
    (xdrproc_t)xdr_ShortSeq, (xdrproc_t)xdr_CharSeq,   (xdrproc_t)xdr_LongSeq,
    (xdrproc_t)xdr_OctetSeq, (xdrproc_t)xdr_DoubleSeq, (xdrproc_t)xdr_StructSeq,
};
static const rpcproc_t procedures[DATA_TYPES] = {SEND_SHORT, SEND_CHAR, SEND_LONG, SEND_OCTET, SEND_DOUBLE, SEND_STRUCT};

/* ---- the receiver ---- */

static unsigned long long received;

/* Counts, and answers two-way calls; rpcgen's dispatcher sends no reply without a result. */
static void *take(unsigned elements, size_t element_octets) {
    static char nothing;
    received += (unsigned long long)elements * element_octets;
    return flood.is_two_way ? &nothing : NULL;
}

#define TAKE(procedure, sequence)                                                                                      \
    void *procedure(sequence *argument, struct svc_req *request) {                                                     \
        (void)request;                                                                                                 \
        return take(argument->sequence##_len, sizeof *argument->sequence##_val);                                       \
    }
TAKE(send_short_1_svc, ShortSeq)
TAKE(send_long_1_svc, LongSeq)
TAKE(send_char_1_svc, CharSeq)
TAKE(send_octet_1_svc, OctetSeq)
TAKE(send_double_1_svc, DoubleSeq)
TAKE(send_struct_1_svc, StructSeq)

void ttcp_1(struct svc_req *request, SVCXPRT *transport); /* by rpcgen */

static void receive(const char *host) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = to_address(host, "0");
    socklen_t length = sizeof address;
    set_options(listener, &flood); /* connections inherit them */
    if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        die("listen");
    say_port(ntohs(address.sin_port));
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        die("accept");
    set_options(fd, &flood);
    SVCXPRT *transport = svc_fd_create(fd, RECORD_OCTETS, RECORD_OCTETS);
    if (transport == NULL || !svc_register(transport, TTCP, TTCPVERS, ttcp_1, 0)) {
        fprintf(stderr, "cannot serve the program\n");
        exit(1);
    }
    /* The library removes the descriptor from its set when the sender has closed. */
    while (FD_ISSET(fd, &svc_fdset))
        svc_getreq_common(fd);
    printf("%llu\n", received);
}

/* ---- the sender ---- */

static CLIENT *client;
static Sequence data;

static void call(rpcproc_t procedure, xdrproc_t filter, void *argument, int is_batched) {
    /* Without a result and without time the library sends when its buffer is full, and waits for nothing. */
    struct timeval none = {0, 0}, some = {60, 0};
    enum clnt_stat status = is_batched ? clnt_call(client, procedure, filter, (char *)argument, NULL, NULL, none)
                                       : clnt_call(client, procedure, filter, (char *)argument, (xdrproc_t)xdr_void, NULL, some);
    if (status != RPC_SUCCESS && !(is_batched && status == RPC_TIMEDOUT)) {
        clnt_perror(client, "call");
        exit(1);
    }
}

static void send_buffers(unsigned long count) {
    for (unsigned long buffer = 0; buffer < count; buffer++)
        call(procedures[flood.type], filters[flood.type], &data, !flood.is_two_way);
    call(NULLPROC, (xdrproc_t)xdr_void, NULL, 0);
}

static void transmit(const char *host, const char *port) {
    struct sockaddr_in address = to_address(host, port);
    struct netbuf server = {sizeof address, sizeof address, &address};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_options(fd, &flood);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("connect");
    client = clnt_vc_create(fd, &server, TTCP, TTCPVERS, RECORD_OCTETS, RECORD_OCTETS);
    if (client == NULL) {
        clnt_pcreateerror("connect");
        exit(1);
    }
    data.LongSeq_len = flood.elements;
    data.LongSeq_val = (int *)make_data(&flood);
    call(NULLPROC, (xdrproc_t)xdr_void, NULL, 0);
    run_floods(send_buffers);
    clnt_destroy(client);
    close(fd);
}

int main(int count, char **arguments) {
    if (count == 7 && strcmp(arguments[1], "receive") == 0) {
        flood = read_flood(arguments + 3);
        receive(arguments[2]);
    } else if (count == 8 && strcmp(arguments[1], "transmit") == 0) {
        flood = read_flood(arguments + 4);
        transmit(arguments[2], arguments[3]);
    } else {
        fprintf(stderr, "usage: see peers/flood.h\n");
        return 2;
    }
    return 0;
}
