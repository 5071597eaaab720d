//! The General Inter-ORB Protocol over bytes: messages, framing, references and system exceptions as values.
//!
//! Decoding goes from the outside in. [`MessageHeader::parse`] gives the length of a message, and
//! [`Assembler`] joins fragments. [`Message::decoder`] goes to [`RequestHeader::decode`] or a similar
//! function, which leaves it at the body.
//!
//! Encoding goes the other way. [`RequestTemplate::begin`], [`begin_reply`] and similar functions write
//! everything up to the body into an empty encoder, [`Body::end`] completes the message, and [`Fragments`]
//! divides a long one.
//!
//! [`ObjectUrl`] and [`IiopProfile`] hold the addresses of objects.
//!
//! This crate opens no socket, starts no thread and reads no clock. Encoding of values belongs to
//! `spandrel-cdr`; connections, retries and the handling of exceptions belong to `spandrel-orb`.
//!
//! Source: CORBA 3.3 Part 2, clauses 7.6 (references) and 9 (GIOP).
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as spandrel_giop;

mod assembler;
mod bidirectional;
mod body;
mod code_set_negotiation;
pub mod component;
mod context;
mod corbaloc;
pub mod datagram;
mod detail;
mod error;
mod exception;
mod exception_kind;
mod fragments;
mod header;
pub mod ids;
mod ior;
pub mod local_address;
mod locate;
mod message;
mod message_type;
pub mod minor;
mod osf_registry;
pub mod percent;
mod profile;
mod reply;
mod request;
mod target;
mod template;
#[cfg(test)]
mod tests;

pub use assembler::Assembler;
pub use bidirectional::{CONTEXT_BI_DIR_IIOP, ListenPoint};
pub use body::Body;
pub use code_set_negotiation::{
    ALL_CODE_SETS, BASIC_CODE_SETS, CONTEXT_CODE_SETS, KnownCodeSets, NoCommonCodeSet, OwnCodeSets,
    TransmissionCodeSets,
};
pub use context::{
    ContextLimits, ServiceContext, ServiceContextRef, ServiceContexts, ServiceContextsIter, context_name,
};
pub use corbaloc::{Address, Corbaloc, DEFAULT_PORT, ObjectUrl};
pub use detail::{
    CONTEXT_EXCEPTION_DETAIL, WITHHELD_DETAIL, exception_detail, public_exception_detail, read_exception_detail,
};
pub use error::{GiopError, Reaction, ReferenceError};
pub use exception::{CompletionStatus, Explanation, SystemException};
pub use exception_kind::SystemExceptionKind;
pub use fragments::{Fragments, MIN_FRAGMENT};
pub use header::{HEADER_LEN, MessageHeader, bare_message};
pub use ior::{ior_from_string, ior_to_string};
pub use locate::{
    CancelRequest, LocateReplyHeader, LocateRequestHeader, LocateStatus, begin_locate_reply, locate_request,
};
pub use message::Message;
pub use message_type::MessageType;
pub use profile::{IiopProfile, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS};
pub use reply::{ReplyHeader, ReplyStatus, begin_reply};
pub use request::{HeaderPositions, RequestHeader, ResponseFlags};
pub use target::{AddressingDisposition, Target};
pub use template::{CompleteHeader, RequestTemplate};
