//! Streams of modules (paper 002, 2.3): layered services that pass messages.
#![forbid(unsafe_code)]

mod control;
mod ends;
mod flow;
mod layer;
mod message;
mod module;
mod queue;
mod stream;
mod task;
mod topology;

pub use control::{Answer, ControlError, Query, Request};
pub use layer::{Asynchronous, Service, Synchronous};
pub use message::{Flush, Message, MessageKind};
pub use module::{Module, PassThrough};
pub use queue::{DequeueError, EnqueueError, EnqueueFailure, MessageQueue, Position, Queued, Wait, WaterMarks};
pub use stream::{HEAD, MAX_MODULES, Removal, Stream, StreamError, TAIL};
pub use task::{Context, OpenContext, PutError, PutFailure, ServiceContext, Side, Task, TaskError};
