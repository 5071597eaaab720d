//! STREAM pipes over the named pipes of Windows.
//!
//! An acceptor always has one instance of its pipe that nobody has been given yet, from its opening to its end: so the name is never
//! free for others to take. Whoever comes takes that instance, and has a pipe before the acceptor knows of them, as a connection
//! waits in a listening socket's queue; the next one waits until the acceptor has made another instance. How Windows is asked for
//! all of this is in [`crate::sys::named_pipe`].

mod acceptor;
mod addr;
mod connector;
mod options;
mod pair;
mod receiving;
mod sending;
mod stream;

pub use acceptor::Acceptor;
pub use addr::Addr;
pub use connector::Connector;
pub use options::AcceptorOptions;
pub use pair::pair;
pub use stream::Stream;
