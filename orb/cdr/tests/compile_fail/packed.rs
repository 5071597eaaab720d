//! Unaligned members are rejected.
use spandrel_cdr::interpret;

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Packed {
    octet: u8,
    number: u32,
}
interpret!(struct Packed { octet: u8, number: u32 });

fn main() {}
