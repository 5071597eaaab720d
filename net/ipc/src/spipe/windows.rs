//! STREAM pipes over the named pipes of Windows.
//!
//! While an acceptor is open, one instance of its pipe is always free, so that no other process can take the
//! name. A client takes that instance, and has a pipe before the acceptor knows of it, as a connection waits
//! in the queue of a listening socket; the next client waits until the acceptor has made another instance.
//! The system calls are in [`crate::sys::named_pipe`].

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
