//! Every number that Spandrel assigned itself: minor codes, the ORB type, components and service contexts.
//!
//! None is registered with the OMG yet. All share the prefix `SP`, by which traces show their origin.

/// Spandrel's vendor minor codeset id: the upper 20 bits of minor codes that the standard does not define.
pub const VMCID: u32 = 0x5350_5000;

macro_rules! own_minor_codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        $(#[doc = concat!($text, ".")] pub const $name: u32 = VMCID | $number;)*

        /// The meaning of one of Spandrel's minor codes.
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
    MARSHAL_OTHER = 1, "octets that are well formed but have no acceptable meaning";
    MARSHAL_TRUNCATED = 2, "the message ended inside a value";
    MARSHAL_LENGTH = 3, "a length exceeds the octets of the message";
    MARSHAL_OVER_BOUND = 4, "a bounded string or sequence is too long";
    MARSHAL_TOO_LONG = 5, "a sequence or message is longer than 4 GiB";
    MARSHAL_BAD_VALUE = 6, "an invalid boolean or enumerator";
    MARSHAL_BAD_STRING = 7, "a string does not end with NUL";
    MARSHAL_TOO_DEEP = 8, "values nest deeper than the limit";
    MARSHAL_HEADER = 9, "the header of a request or reply is malformed";
    BAD_PARAM_NUL_IN_STRING = 16, "a string contains NUL";
    INV_OBJREF_PROFILE = 17, "a profile of the reference is malformed";
    IMP_LIMIT_MESSAGE = 18, "a message is longer than this side accepts (-ORBMaxMessageSize)";
    COMM_FAILURE_PROTOCOL = 19, "the peer violated the protocol";
    TRANSIENT_FORWARD_LOOP = 20, "the object was forwarded too many times in a row";
    BAD_PARAM_NARROW = 21, "the object does not support the interface that it was narrowed to";
    BAD_PARAM_DISCRIMINATOR = 22, "the discriminator of a union does not select its active branch";
    BAD_INV_ORDER_COPIED = 23, "the ORB belongs to the parent process of this fork";
    IMP_LIMIT_CONTEXTS = 31, "a message has more service contexts than this side accepts";
    IMP_LIMIT_DECODED = 32, "decoded values take more memory than this side allows (-ORBMaxDecodedFactor)";
    NO_PERMISSION_POLICY = 33, "the policy of the server denies the operation to this caller";
    NO_PERMISSION_CALLBACK = 34, "the object takes no requests over connections that its own ORB has opened (BidirectionalPolicy)";
    OBJECT_NOT_EXIST_KEY = 35, "the adapter has no active object for the object key";
    UNKNOWN_PANIC = 36, "the servant panicked";
    TRANSIENT_NO_CALLBACK_CONNECTION = 37, "the server is only reached over connections that it has opened, and none is open (both sides need -ORBBidirectional)";
    TRANSIENT_NESTING = 30, "upcalls are nested too deep in a thread that waits for a reply";
}

/// The value of `TAG_ORB_TYPE` in references that this ORB makes: `SPDR`.
pub const ORB_TYPE: u32 = 0x5350_4452;

/// A component that offers operation lookup by index; its data is an encapsulation with the table's
/// fingerprint.
pub const TAG_OPERATION_INDEX: u32 = 0x5350_4401;

/// The service context with an operation's index, sent by a client.
pub const CONTEXT_OPERATION_INDEX: u32 = 0x5350_4401;

/// A service context without meaning: it changes the alignment of the octets after it.
pub const CONTEXT_SHIM: u32 = 0x5350_4403;

/// The policy type of an adapter's operation lookup.
pub const POLICY_OPERATION_DEMUX: u32 = VMCID | 1;

/// The policy type of an adapter's object lookup.
pub const POLICY_OBJECT_DEMUX: u32 = VMCID | 2;

/// The policy type of an adapter's request executor.
pub const POLICY_REQUEST_EXECUTOR: u32 = VMCID | 3;

/// The service context with a deadline as remaining time.
pub const CONTEXT_REMAINING_TIME: u32 = 0x5350_4402;

/// The service context with a W3C trace context: an encapsulation of the strings `traceparent` and
/// `tracestate`.
pub const CONTEXT_TRACE: u32 = 0x5350_4410;

/// A component with an address of the server inside its host: an encapsulation of a
/// [`LocalAddress`](crate::local_address::LocalAddress).
pub const TAG_LOCAL_ADDRESS: u32 = 0x5350_4420;

/// A component with a server's address for requests by datagram: an encapsulation of a
/// [`DatagramAddress`](crate::datagram::DatagramAddress).
pub const TAG_DATAGRAM_ADDRESS: u32 = 0x5350_4421;
