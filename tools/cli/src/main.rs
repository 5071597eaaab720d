//! The spandrel command.
fn main() {}
