/* The filters by hand in place of those of rpcgen: octets without conversion, as paper 001, 2.3.1, optimises them. */
#include <rpc/rpc.h>

#include "ttcp.h"

/* The octets of a sequence. Only peers with the same order and alignment of octets understand each other. */
static bool_t xdr_octets(XDR *xdrs, char **octets, u_int *elements, u_int element_octets) {
    u_int length = *elements * element_octets;
    if (!xdr_bytes(xdrs, octets, &length, ~0u))
        return FALSE;
    *elements = length / element_octets;
    return TRUE;
}

#define OPAQUE(filter, sequence)                                                                                       \
    bool_t filter(XDR *xdrs, sequence *value) {                                                                        \
        return xdr_octets(xdrs, (char **)&value->sequence##_val, &value->sequence##_len,                               \
                          sizeof *value->sequence##_val);                                                              \
    }
OPAQUE(xdr_ShortSeq, ShortSeq)
OPAQUE(xdr_LongSeq, LongSeq)
OPAQUE(xdr_CharSeq, CharSeq)
OPAQUE(xdr_OctetSeq, OctetSeq)
OPAQUE(xdr_DoubleSeq, DoubleSeq)
OPAQUE(xdr_StructSeq, StructSeq)
