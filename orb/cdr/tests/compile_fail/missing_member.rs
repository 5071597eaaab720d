//! A missing member is rejected, and so is a repeated one.
use spandrel_cdr::interpret;

#[derive(Clone)]
struct Two {
    one: u32,
    two: String,
}
interpret!(struct Two { one: u32 });

#[derive(Clone)]
struct Again {
    text: String,
}
interpret!(struct Again { text: String, text: String });

fn main() {}
