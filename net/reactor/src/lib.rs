//! Demultiplexing of input and output, timers, signals and notifications, and dispatch to handlers.
//!
//! A [`Reactor`] waits for all of these at one place and calls the [`EventHandler`]s that are registered for them (paper 002,
//! section 2.4; paper 004, section 4.2). Handlers belong to it; everybody else has a [`Registry`], through which handlers are
//! registered, removed, suspended and notified from any thread.
//!
//! ```
//! use std::io;
//! use std::time::Duration;
//! use spandrel_ipc::Pollable;
//! use spandrel_reactor::{Context, EventHandler, Expired, Reactor};
//! use spandrel_ipc::Interest;
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
//! Strategies are chosen once, in [`Options`]: what waits ([`Backend`]), how timers are kept
//! ([`TimerStrategy`](timer::TimerStrategy)), who dispatches ([`ThreadStrategy`]).
//!
//! # What it costs
//! In the steady state an event costs its share of one wait and what its handler does: no other system call, no allocation, no
//! lock that anybody waits for, and no clock unless there are timers.

mod acceptor;
mod connector;
mod core;
mod demux;
mod dispatch;
mod inside;
mod key;
mod lead;
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
pub mod timer;
mod wakeup;

pub use acceptor::{AcceptLoop, Acceptor, ConnectionSource, Listening, Server};
pub use connector::{Backoff, CacheLimits, Cached, Client, ConnectionCache, Connector};
pub use demux::{Backend, Trigger};
pub use key::HandlerId;
pub use log_limit::{LogLimit, Unlogged};
pub use options::{Options, ThreadStrategy};
pub use queue::Expired;
pub use reactor::Reactor;
pub use registry::{CloseReason, Context, EventHandler, Registry};
pub use service::{MAX_WAITING, Peer, Service, ServiceHandler};
pub use shard::Shards;
#[cfg(unix)]
pub use signal::Signal;
