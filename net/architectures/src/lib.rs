//! One service in every server architecture (paper 004).
//!
//! A [`Protocol`] makes a [`Session`] for each connection, which knows nothing of sockets and threads. Each module
//! named after an architecture has a function `start`, which runs a protocol in that architecture at a [`Port`].
//! [`Architecture`] chooses between them by name.
//!
//! | architecture | module |
//! | --- | --- |
//! | one connection after another | [`iterative`] |
//! | one thread, all connections | [`reactive`] |
//! | threads that take turns, all connections | [`leader_followers`] |
//! | a thread for each connection | [`thread_per_connection`] |
//! | a pool behind a queue | [`queue_pool`] |
//! | a pool that competes for `accept` | [`accept_pool`] |
//! | asynchronous operations (io_uring; completion ports of Windows) | `asynchronous` |
//! | a process for each connection (Linux) | `process_per_connection` |
//! | a pool of processes that competes for `accept` (Linux) | `pre_forked` |
//!
//! ```
//! use std::io::Read;
//! use std::time::Duration;
//!
//! use spandrel_architectures::{Port, Server, Settings, queue_pool, transfer};
//! use spandrel_ipc::inet::Addr;
//!
//! let port = Port::exclusive(&Addr::loopback(0))?;
//! let server = queue_pool::start(&port, transfer::Transfer { has_greeting: true }, &Settings::default())?;
//! let mut client = std::net::TcpStream::connect(std::net::SocketAddr::from(port.addr()?))?;
//! let mut greeting = [0; 7];
//! client.read_exact(&mut greeting)?;
//! assert_eq!(&greeting, transfer::GREETING);
//! # drop(client);
//! assert_eq!(server.stop(Duration::from_secs(5)), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod accept_pool;
mod adaptive;
mod architecture;
#[cfg(proactor)]
pub mod asynchronous;
mod blocking;
mod event_driven;
pub mod http;
pub mod iterative;
pub mod leader_followers;
mod listening;
mod open_streams;
#[cfg(target_os = "linux")]
pub mod pre_forked;
#[cfg(target_os = "linux")]
mod process_main;
#[cfg(target_os = "linux")]
pub mod process_per_connection;
#[cfg(target_os = "linux")]
mod process_protocol;
#[cfg(target_os = "linux")]
mod processes;
pub mod queue_pool;
pub mod reactive;
mod server;
mod service;
mod session;
mod settings;
mod switching;
pub mod thread_per_connection;
mod threads;
pub mod transfer;

pub use adaptive::{Adaptation, AdaptiveServer, SAMPLE};
pub use architecture::Architecture;
pub use listening::Port;
#[cfg(target_os = "linux")]
pub use process_main::serve_as_process;
pub use server::Server;
pub use service::{Service, ServiceSession};
pub use session::{MAX_PIECE, Phase, Protocol, Session};
pub use settings::{AcceptLock, Settings};
pub use switching::SwitchingServer;
