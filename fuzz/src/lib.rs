//! The fuzz targets: a function for each, which panics on a fault.
//!
//! `fuzz_targets` passes them to libFuzzer; `replay` runs them on fixed inputs.

pub mod any;
pub mod cdr_decode;
pub mod constraint;
pub mod differential;
pub mod giop_cut;
pub mod giop_ior;
pub mod giop_message;
pub mod giop_parts;
pub mod idl;
pub mod media;
pub mod settings;
pub mod text;
pub mod xdr;

#[allow(dead_code)]
#[path = "../../orb/bulk/src/wire.rs"]
mod bulk_wire;

/// The items that the formats of media flows import.
mod imports {
    pub(crate) use spandrel_cos::flow_protocol;

    pub(crate) use crate::bulk_wire::{TOKEN_OCTETS, Token};
}

/// A target: its name, and its function of an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 13] = [
    ("any", any::run),
    ("cdr_decode", cdr_decode::run),
    ("constraint", constraint::run),
    ("differential", differential::run),
    ("giop_cut", giop_cut::run),
    ("giop_ior", giop_ior::run),
    ("giop_message", giop_message::run),
    ("giop_parts", giop_parts::run),
    ("idl", idl::run),
    ("media", media::run),
    ("settings", settings::run),
    ("text", text::run),
    ("xdr", xdr::run),
];
