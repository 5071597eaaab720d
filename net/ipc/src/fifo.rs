//! FIFOs: named pipes, one way, with a type for each role.
//!
//! A FIFO is a file that connects the processes that open it for reading with those that open it for writing.
//! All writers share one channel, and each call that sends at most [`ATOMIC`] octets arrives in one piece; so
//! FIFOs serve many senders of short messages and one receiver. There are no connections: a [`Reader`] cannot
//! answer, and it sees the end of the stream when the last writer has closed, unless it was opened with
//! [`open_lasting`](Reader::open_lasting).
//!
//! ```
//! use spandrel_ipc::fifo::{Addr, Reader, Writer, create};
//!
//! # let folder = std::env::temp_dir().join(format!("spandrel-fifo-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let addr = Addr::path(folder.join("commands"))?;
//! # let _ = std::fs::remove_file(addr.as_path());
//! create(&addr, 0o600)?;
//! let reader = Reader::open_lasting(&addr)?;
//! let writer = Writer::open(&addr)?; // does not wait, since there is a reader
//! writer.send_n(b"start")?;
//! let mut octets = [0; 5];
//! reader.recv_n(&mut octets)?;
//! assert_eq!(&octets, b"start");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod addr;
mod end;
mod reader;
mod writer;

use std::io;

pub use addr::{Addr, create};
pub use reader::Reader;
pub use writer::Writer;

use end::End;

/// The maximum number of octets of one send that arrive in one piece, not mixed with those of other writers
/// (`PIPE_BUF`).
pub const ATOMIC: usize = rustix::pipe::PIPE_BUF;

/// Both ends of an unnamed pipe, for threads of this process or to be passed to others.
///
/// # Errors
/// Any error of the operating system, such as too many open files.
pub fn pair() -> io::Result<(Reader, Writer)> {
    #[cfg(not(target_vendor = "apple"))]
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    let (read, write) = rustix::pipe::pipe()?;
    Ok((Reader(End::new(read)?), Writer(End::new(write)?)))
}
