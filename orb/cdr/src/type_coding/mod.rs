//! Type codes on the wire (CORBA 3.3 Part 2, 9.3.5.1).

mod read;
mod recent;
mod write;

pub(crate) use read::read_discriminator;
pub(crate) use write::write_discriminator;

/// The mark of an indirection, in place of a kind.
const INDIRECTION: u32 = 0xffff_ffff;
