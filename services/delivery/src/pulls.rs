//! Calls of `pull` that wait for an event, without a thread for each.

use std::fmt::Debug;
use std::sync::mpsc;
use std::thread;

use spandrel::net::sync::{Arc, Mutex};

use crate::event::Event;

/// A call of a consumer that waits for events: its deferred reply.
pub trait WaitingPull: Debug + Send + Sized + 'static {
    /// The content of an event, as the service queues it.
    type Value: Debug + Send + Sync + 'static;

    /// Whether the consumer has cancelled the call, or its connection has ended.
    fn is_cancelled(&self) -> bool;

    /// Whether the call takes this event.
    fn accepts(&self, _event: &Self::Value) -> bool {
        true
    }

    /// The most events that the call takes.
    fn how_many(&self) -> usize {
        1
    }

    /// Sends the reply. The thread may wait for the consumer's connection.
    fn send(self, end: PullEnd<Self::Value>);
}

/// The result with which a `pull` that waited is answered.
#[derive(Debug)]
pub enum PullEnd<V> {
    /// At least one event, and at most [`WaitingPull::how_many`].
    Events(Vec<Arc<Event<V>>>),
    /// The connection of the proxy has ended.
    Disconnected,
    /// The queue has [`QueueBounds::waiting_pulls`](crate::QueueBounds) waiting calls already.
    Refused,
}

/// A `pull` and its end. It is sent by a thread that may wait for the peer.
pub type EndedPull<W> = (W, PullEnd<<W as WaitingPull>::Value>);

/// The thread that replies to pulls which waited, so that no supplier waits for the connection of a consumer.
#[derive(Debug)]
pub struct PullReplies<W: WaitingPull> {
    sender: Mutex<Option<mpsc::Sender<EndedPull<W>>>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl<W: WaitingPull> PullReplies<W> {
    /// Starts the thread that sends replies.
    ///
    /// # Panics
    /// If the system has no more threads.
    #[must_use]
    pub fn start() -> Self {
        let (sender, pulls) = mpsc::channel::<EndedPull<W>>();
        let reply = move || {
            for (reply, end) in pulls {
                reply.send(end);
            }
        };
        let thread = thread::Builder::new().name("spandrel-pulls".to_owned()).spawn(reply);
        let thread = thread.expect("the system has a thread left");
        Self { sender: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) }
    }

    /// Hands an ended call to the thread. Without effect after [`stop`](Self::stop).
    pub fn send(&self, pull: EndedPull<W>) {
        if let Some(sender) = &*self.sender.lock() {
            _ = sender.send(pull); // the thread ends after the sender
        }
    }

    /// Ends the thread once the replies that were handed over are sent.
    pub fn stop(&self) {
        drop(self.sender.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            _ = thread.join();
        }
    }
}
