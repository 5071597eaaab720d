//! The parts that all channels of a service share.

use spandrel::net::sync::{Arc, Mutex};
use spandrel::server::DeferredReply;
use spandrel::services::cos_event_comm::Disconnected;
use spandrel::services::cos_event_comm::pull_supplier::PullError;
use spandrel::types::Any;
use spandrel::{CompletionStatus, Orb, Poa, SystemException};
use spandrel_delivery::{CallArguments, EventMemory, PeerOptions, PullEnd, PullReplies, Timer, WaitingPull};
use spandrel_store::StoreFailure;

use crate::content::EventContent;
use crate::limits::Limits;
use crate::store::Store;

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
    pub(crate) replies: PullReplies<PullReply>,
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
        Ok(change(&mut store.lock())?)
    }
}

/// The reply to a call that waits for an event.
#[derive(Debug)]
pub(crate) enum PullReply {
    /// To `pull`: the value of an event.
    Value(DeferredReply<Any, PullError>),
    /// To an operation of a pull interface: the arguments of an event's call.
    Call { reply: DeferredReply<CallArguments>, operation: String },
}

impl WaitingPull for PullReply {
    type Value = EventContent;

    fn is_cancelled(&self) -> bool {
        match self {
            Self::Value(reply) => reply.cancellation().is_cancelled(),
            Self::Call { reply, .. } => reply.cancellation().is_cancelled(),
        }
    }

    fn accepts(&self, event: &EventContent) -> bool {
        match self {
            Self::Value(_) => true,
            Self::Call { operation, .. } => event.operation() == Some(operation),
        }
    }

    fn send(self, end: PullEnd<EventContent>) {
        let refused = || {
            let detail = "too many calls of `pull` wait at this proxy";
            SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail)
        };
        let gone = || SystemException::object_not_exist(0, CompletionStatus::No);
        match self {
            Self::Value(reply) => reply.send(match end {
                PullEnd::Events(events) => {
                    Ok(events.first().map(|event| event.value.value.clone()).unwrap_or_default())
                }
                PullEnd::Disconnected => Err(Disconnected {}.into()),
                PullEnd::Refused => Err(refused().into()),
            }),
            Self::Call { reply, .. } => reply.send(match end {
                PullEnd::Events(events) => {
                    events.first().map_or_else(|| Err(gone()), |event| event.value.arguments()).map(CallArguments)
                }
                PullEnd::Disconnected => Err(gone()),
                PullEnd::Refused => Err(refused()),
            }),
        }
    }
}
