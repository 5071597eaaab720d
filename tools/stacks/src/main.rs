//! The executable behind `spandrel bench stacks`.

fn main() {}
