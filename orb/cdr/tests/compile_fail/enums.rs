//! An enum has four octets and contiguous enumerators from zero, all listed in order.
use spandrel_cdr::interpret;

#[derive(Clone, Copy)]
#[repr(u8)]
enum Small {
    A,
    B,
}
interpret!(enum Small { A, B });

#[derive(Clone, Copy)]
#[repr(u32)]
enum Sparse {
    A = 0,
    B = 2,
}
interpret!(enum Sparse { A, B });

#[derive(Clone, Copy)]
#[repr(u32)]
enum Forgotten {
    A,
    B,
}
interpret!(enum Forgotten { A });

fn main() {}
