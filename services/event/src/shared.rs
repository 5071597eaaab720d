//! The parts that all channels of a service share.

use std::sync::mpsc;
use std::thread;

use spandrel::messaging::AsyncReply;
use spandrel::net::sync::{Arc, Mutex};
use spandrel::services::cos_event_comm::Disconnected;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};

use crate::limits::{EventMemory, Limits, PeerOptions};
use crate::queue::{EndedPull, PullEnd};
use crate::store::{Store, StoreFailure};
use crate::timer::Timer;

/// The ORB, bounds, memory and store of a service.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) orb: Orb,
    pub(crate) adapter: Poa,
    pub(crate) limits: Limits,
    pub(crate) peers: PeerOptions,
    pub(crate) memory: Arc<EventMemory>,
    pub(crate) timer: Timer,
    pub(crate) store: Option<Arc<Mutex<Store>>>,
    pub(crate) replies: PullReplies,
}

impl Shared {
    /// Makes a change of the store, if there is one.
    ///
    /// # Errors
    /// PERSIST_STORE if the store cannot be written.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Store) -> Result<(), StoreFailure>,
    ) -> Result<(), SystemException> {
        let Some(store) = &self.store else { return Ok(()) };
        change(&mut store.lock()).map_err(|failure| {
            let (completed, text) = match failure {
                StoreFailure::Unchanged(text) => (CompletionStatus::No, text),
                StoreFailure::Uncertain(text) => (CompletionStatus::Maybe, text),
            };
            SystemException::persist_store(0, completed).with_detail(move || text)
        })
    }

    /// Calls an operation without arguments of a peer, and waits for no reply.
    pub(crate) fn notify(&self, peer: &ObjectRef, operation: &'static str) {
        let peer = peer.with_timeout(Some(self.peers.timeout));
        let reply: AsyncReply<(), SystemException> = peer.invoke_async(operation, |_| Ok(()), |_| Ok(()));
        let task = async move {
            if let Err(error) = reply.await {
                tracing::debug!(%error, operation, "a peer did not get notice of its disconnection");
            }
        };
        if let Err(error) = self.orb.spawn(task) {
            tracing::debug!(%error, operation, "a peer did not get notice of its disconnection");
        }
    }

    /// Replies to a `pull` that has waited.
    pub(crate) fn end_pull(&self, pull: EndedPull) {
        self.replies.send(pull);
    }
}

/// The thread that replies to pulls which waited, so that no supplier waits for the connection of a consumer.
#[derive(Debug)]
pub(crate) struct PullReplies {
    sender: Mutex<Option<mpsc::Sender<EndedPull>>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl PullReplies {
    pub(crate) fn start() -> Self {
        let (sender, pulls) = mpsc::channel::<EndedPull>();
        let thread = thread::spawn(move || {
            for (reply, end) in pulls {
                reply.send(match end {
                    PullEnd::Event(event) => Ok(event.value.clone()),
                    PullEnd::Disconnected => Err(Disconnected {}.into()),
                    PullEnd::Refused => {
                        let detail = "too many calls of `pull` wait at this proxy";
                        Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail).into())
                    }
                });
            }
        });
        Self { sender: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) }
    }

    fn send(&self, pull: EndedPull) {
        if let Some(sender) = &*self.sender.lock() {
            _ = sender.send(pull); // the thread ends after the sender
        }
    }

    /// Ends the thread after the replies that are left.
    pub(crate) fn stop(&self) {
        drop(self.sender.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            _ = thread.join();
        }
    }
}
