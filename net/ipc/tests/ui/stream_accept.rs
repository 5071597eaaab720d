//! A connected stream accepts no connections.

use spandrel_ipc::inet::Stream;

fn wrong(stream: &Stream) {
    let _ = stream.accept();
}

fn main() {
    let _ = wrong;
}
