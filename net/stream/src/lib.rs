//! Streams of modules: layered services that pass messages to each other (paper 002, 2.3).
//!
//! | for | types |
//! | --- | --- |
//! | messages and queues | [`Message`], [`MessageQueue`], [`LockFreeQueue`], [`WaterMarks`] |
//! | strategies of queues | a lock ([`Mutex`](spandrel_sync::Mutex), …), or [`LockFree`] |
//! | layers | [`Module`] with two [`Task`]s; [`Synchronous`] and [`Asynchronous`] make one of a [`Service`] |
//! | series of layers | [`Stream`] |
//! | many streams above and below | [`Multiplexor`], [`MapManager`] |
//! | streams in a `svc.conf` file | [`StreamDirectives`], [`ConfiguredStream`], [`TaskService`] |
//!
//! ```
//! use std::time::Duration;
//!
//! use spandrel_stream::{Asynchronous, Context, Message, Module, PutError, Service, Stream, Wait};
//!
//! /// Sends messages back in capitals.
//! struct Shouting;
//!
//! impl Service for Shouting {
//!     fn process(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
//!         if let Some(block) = message.block() {
//!             message.set_block(block.to_ascii_uppercase()[..].into());
//!         }
//!         context.reply(message)
//!     }
//! }
//!
//! let stream: Stream = Stream::new("echo");
//! stream.push(Module::writer("shouting", Asynchronous::new(Shouting)))?;
//! stream.put(Message::data(b"hello".into()), Wait::Forever)?;
//! assert_eq!(&**stream.get(Wait::Forever)?.block().unwrap(), b"HELLO");
//! stream.close(Duration::from_secs(1))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(not(shuttle))]
mod configured_stream;
mod control;
mod counter;
mod ends;
mod event_count;
mod excess;
mod flow;
#[cfg(not(shuttle))]
mod foreign_task;
mod layer;
mod lock_free;
mod lock_waits;
mod map_manager;
mod message;
#[cfg(all(test, shuttle))]
mod models;
mod module;
mod multiplexor;
mod queue;
mod status;
mod strategy;
mod stream;
mod stream_core;
mod task;
#[cfg(not(shuttle))]
mod task_service;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod thread_body;
mod topology;
mod wait;

#[cfg(not(shuttle))]
pub use configured_stream::{ConfiguredStream, StreamDirectives, module_factory};
pub use control::{Answer, ControlError, Query, Request};
pub use layer::{Asynchronous, Service, Synchronous};
pub use lock_free::LockFreeQueue;
pub use lock_waits::LockWaits;
pub use map_manager::{BindError, MapManager};
pub use message::{Flush, Message, MessageKind};
pub use module::{HEAD, Module, PassThrough, TAIL};
pub use multiplexor::{AttachError, Multiplexor, Router, StreamHandle};
pub use queue::{DequeueError, EnqueueError, EnqueueFailure, MessageQueue, Position, Queued, WaterMarks};
pub use status::{ModuleStatus, StreamStatus, TaskStatus};
pub use strategy::{LockFree, QueueStrategy, Tail, TaskQueue};
pub use stream::{MAX_MODULES, Removal, Stream, StreamError};
pub use task::{Context, OpenContext, PutError, PutFailure, ServiceContext, Side, Task, TaskError};
#[cfg(not(shuttle))]
pub use task_service::TaskService;
pub use wait::Wait;
