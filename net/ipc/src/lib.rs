//! Typed endpoints over operating system handles.
//!
//! One module per family of transports, with the same names in every family: an `Addr` is the address of an
//! endpoint, an `Acceptor` waits for connections and does nothing else, a `Connector` establishes them, a
//! `Stream` transfers octets both ways. Operations that an endpoint does not support are absent from its
//! type. So a misuse that the socket interface would report at run time, such as reading from a listening
//! socket, does not compile:
//!
//! ```compile_fail,E0599
//! use spandrel_ipc::inet::{Acceptor, Addr};
//! let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
//! acceptor.recv(&mut [0; 16]); // no method named `recv`
//! ```
//!
//! The wrappers cost nothing: [`inet::Stream::send`] and [`recv`](inet::Stream::recv) are one system call
//! each, without allocation. The traits [`Family`], [`Transfer`] and [`Pollable`] let code be generic over
//! families.
//!
//! Families of streams: [`inet`], TCP over IPv4 and IPv6; and, where the system has them, `unix`, UNIX-domain
//! sockets; `spipe`, STREAM pipes; `shm`, shared memory. One-way channels: `fifo`, named pipes. Datagrams: in
//! [`inet`] and `unix`; see [`dgram`]. Input can be announced by a signal (`signal_driven`, UNIX). Event
//! demultiplexing belongs to `spandrel-reactor`, framing to the protocols above, buffers to
//! `spandrel-message`.

mod error;
mod exact;
mod family;
mod inherent;
#[cfg(unix)]
mod interrupted;
mod pollable;
mod process_mark;
mod process_memory;
mod socket;
#[allow(unsafe_code, reason = "system calls that no safe library offers")]
mod sys;
mod transfer;

pub mod dgram;
#[cfg(unix)]
pub mod fifo;
pub mod inet;
#[cfg(target_os = "linux")]
pub mod shm;
#[cfg(unix)]
pub mod signal_driven;
#[cfg(any(unix, windows))]
pub mod spipe;
#[cfg(unix)]
pub mod unix;

pub use error::{TransferError, is_timeout};
pub use family::{Accept, Connecting, Family};
pub use pollable::{Handle, Interest, Pollable, Prepared, wait_ready};
pub use process_mark::ProcessMark;
pub use process_memory::release_free_memory;
pub use std::io::{IoSlice, IoSliceMut};
pub use std::net::Shutdown;
pub use transfer::{Receive, Transfer, Transmit};
