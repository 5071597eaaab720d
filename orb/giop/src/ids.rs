//! Every number that this ORB took for itself: minor codes, the ORB type, components and service contexts.
//!
//! None is registered with the OMG yet; all share the prefix `SP`, so that a trace shows whose they are.

/// Our vendor minor codeset id: the upper 20 bits of minor codes that the standard does not define.
pub const VMCID: u32 = 0x5350_5000;

macro_rules! own_minor_codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        $(#[doc = concat!($text, ".")] pub const $name: u32 = VMCID | $number;)*

        /// What one of our own minor codes means.
        #[must_use]
        pub fn describe(minor: u32) -> Option<&'static str> {
            match minor {
                $($name => Some($text),)*
                _ => None,
            }
        }
    };
}

own_minor_codes! {
    MARSHAL_OTHER = 1, "octets that are well formed but mean nothing acceptable";
    MARSHAL_TRUNCATED = 2, "the message ended inside a value";
    MARSHAL_LENGTH = 3, "a length says more than the message holds";
    MARSHAL_OVER_BOUND = 4, "a bounded string or sequence is too long";
    MARSHAL_TOO_LONG = 5, "a sequence or message is longer than 4 GiB";
    MARSHAL_BAD_VALUE = 6, "a boolean or enumerator that does not exist";
    MARSHAL_BAD_STRING = 7, "a string does not end with NUL";
    MARSHAL_TOO_DEEP = 8, "values nest deeper than the limit";
    MARSHAL_HEADER = 9, "the header of a request or reply is malformed";
    BAD_PARAM_NUL_IN_STRING = 16, "a string contains NUL";
    INV_OBJREF_PROFILE = 17, "a profile of the reference is malformed";
    IMP_LIMIT_MESSAGE = 18, "a message is longer than this side accepts";
    COMM_FAILURE_PROTOCOL = 19, "the peer broke the protocol";
    TRANSIENT_FORWARD_LOOP = 20, "the object was forwarded too many times in a row";
    BAD_PARAM_NARROW = 21, "the object does not support the interface that it was narrowed to";
    BAD_PARAM_DISCRIMINATOR = 22, "the discriminator of a union does not select the branch that it has";
    BAD_INV_ORDER_COPIED = 23, "the ORB belongs to the process that this one is a copy of";
    IMP_LIMIT_CONTEXTS = 31, "a message has more service contexts than this side accepts";
    TRANSIENT_NESTING = 30, "requests are nested too deep in a thread that serves others while it waits";
}

/// What `TAG_ORB_TYPE` says in references that this ORB makes: `SPDR`.
pub const ORB_TYPE: u32 = 0x5350_4452;

/// A component that offers operation lookup by index; its data is an encapsulation with the table's fingerprint.
pub const TAG_OPERATION_INDEX: u32 = 0x5350_4401;

/// The service context in which a client sends an operation's index.
pub const CONTEXT_OPERATION_INDEX: u32 = 0x5350_4401;

/// A service context that means nothing: it moves what follows it to another alignment.
pub const CONTEXT_SHIM: u32 = 0x5350_4403;

/// The policy type of how an adapter finds operations.
pub const POLICY_OPERATION_DEMUX: u32 = VMCID | 1;

/// The policy type of how an adapter finds objects.
pub const POLICY_OBJECT_DEMUX: u32 = VMCID | 2;

/// The service context in which a deadline travels as remaining time.
pub const CONTEXT_REMAINING_TIME: u32 = 0x5350_4402;

/// The service context in which a W3C trace context travels: an encapsulation with `traceparent` and `tracestate`, two strings.
pub const CONTEXT_TRACE: u32 = 0x5350_4410;

/// A component that says where a server is reached inside of its host: an encapsulation with a
/// [`LocalAddress`](crate::local_address::LocalAddress).
pub const TAG_LOCAL_ADDRESS: u32 = 0x5350_4420;

/// A component that says where a server reads requests by datagram: an encapsulation with a
/// [`DatagramAddress`](crate::datagram::DatagramAddress).
pub const TAG_DATAGRAM_ADDRESS: u32 = 0x5350_4421;
