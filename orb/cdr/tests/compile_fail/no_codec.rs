//! A member without a table must implement `Encode` and `Decode`.
use spandrel_cdr::interpret;

#[derive(Clone)]
struct Holder {
    thread: std::thread::ThreadId,
}
interpret!(struct Holder { thread: std::thread::ThreadId });

fn main() {}
