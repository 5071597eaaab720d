//! A member's type is checked, without coercion of references.
use spandrel_cdr::interpret;

#[derive(Clone)]
struct Boxed {
    inner: Box<u32>,
}
interpret!(struct Boxed { inner: u32 });

#[derive(Clone)]
struct Narrow {
    number: u16,
}
interpret!(struct Narrow { number: u32 });

fn main() {}
