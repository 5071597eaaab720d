//! Demultiplexing of input and output, timers, signals and notifications, and their dispatch to handlers.
//!
//! A [`Reactor`] waits for all of these in one place and calls the [`EventHandler`]s that are registered for
//! them (paper 002, section 2.4; paper 004, section 4.2). It owns the handlers. Other code uses a
//! [`Registry`] to register, remove, suspend and notify handlers from any thread.
//!
//! ```
//! use std::io;
//! use std::time::Duration;
//! use spandrel_reactor::{Context, EventHandler, Expired, Interest, Pollable, Reactor};
//!
//! struct Egg;
//!
//! impl EventHandler for Egg {
//!     fn pollable(&self) -> Option<&dyn Pollable> {
//!         None
//!     }
//!     fn handle_open(&mut self, cx: &Context<'_>) -> io::Result<()> {
//!         cx.schedule(Duration::from_millis(3), None, 0).map(drop)
//!     }
//!     fn handle_timeout(&mut self, cx: &Context<'_>, _timer: Expired) -> io::Result<()> {
//!         cx.stop();
//!         Ok(())
//!     }
//! }
//!
//! let reactor = Reactor::new()?;
//! reactor.registry().register(Egg, Interest::NONE)?;
//! reactor.run()?;
//! # Ok::<(), io::Error>(())
//! ```
//!
//! [`Options`] selects the strategies once: the mechanism that waits ([`Backend`]), the timer queue
//! ([`TimerStrategy`](timer::TimerStrategy)), and the threads that dispatch ([`ThreadStrategy`]).
//!
//! # Cost
//! In the steady state an event costs its share of one wait and the work of its handler: no other system
//! call, no allocation, no contended lock, and no reading of a clock without timers.

mod acceptor;
mod connector;
mod core;
mod current;
mod demux;
mod dispatch;
#[cfg(target_os = "linux")]
mod forked;
pub mod framing;
mod job_pool;
mod key;
mod leader_followers;
mod log_limit;
#[cfg(all(test, shuttle))]
mod models;
mod options;
mod queue;
mod reactor;
mod registry;
mod service;
mod shard;
#[cfg(unix)]
mod signal;
#[cfg(unix)]
mod signal_source;
mod state;
pub mod strategy;
#[allow(unsafe_code, reason = "handles by their numbers; see there")]
mod sys;
mod table;
mod termination;
pub mod timer;
mod wakeup;

pub use acceptor::{AcceptLoop, Acceptor, ConnectionSource, Listening, Server};
pub use connector::{Backoff, Client, Connector, GaveUp};
pub use demux::{Backend, Trigger};
#[cfg(target_os = "linux")]
pub use forked::ForkedProcesses;
pub use job_pool::{JobPool, TooManyJobs};
pub use key::HandlerId;
pub use log_limit::{LogLimit, Unlogged};
pub use options::{Options, ThreadStrategy};
pub use queue::Expired;
pub use reactor::Reactor;
pub use registry::{CloseReason, Context, EventHandler, HeldRegistrations, Registry};
pub use service::posted::{MAX_NOTICES, Notice, SendError};
pub use service::sender::Sender;
pub use service::{MAX_WAITING, Peer, Service, ServiceHandler};
pub use shard::Shards;
#[cfg(unix)]
pub use signal::Signal;
/// The items of `spandrel-ipc` that handlers name.
pub use spandrel_ipc::{Family, Interest, Pollable};
pub use sys::batch_sender::BatchSender;
/// Asynchronous operations, where the target has an `io_uring` or completion ports.
#[cfg(proactor)]
pub use sys::proactor::{
    Completion, ConnectionHandle, OperationHandle, OperationId, OperationKind, Proactor, SharedHandle, Waker,
};
pub use sys::thread::{ConnectionThread, start_connection_thread};
pub use termination::{TerminationHandler, TerminationRequest, on_termination};
pub use timer::TimerId;
