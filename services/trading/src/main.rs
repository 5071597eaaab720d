//! The executable of the trading service.
fn main() {}
