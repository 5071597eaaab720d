//! Leases of asynchronous calls, which do not wait for a connection.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{Arc, thread};

use super::{CallFailure, ClientConnection, Lease, Peer, RequestLoss, connection_choice::LeaseChoice};
use crate::client::{ReplyReceiver, plug_in};

/// The result of an asynchronous call's request for a connection.
#[derive(Debug)]
pub(crate) enum LeaseResult {
    Leased(Lease<Arc<Peer>>),
    /// None is free: the receiver is notified when there may be one.
    Parked,
}

impl Peer {
    /// Leases an open connection, if the call need not wait for one.
    pub(crate) fn lease_at_once(self: &Arc<Self>) -> Option<Lease<Arc<Self>>> {
        plug_in();
        let (pool, choice) = self.choose(self.pool.lock(), |_| true);
        drop(pool);
        let LeaseChoice::Take(connection) = choice else { return None };
        let lease = Lease { peer: Arc::clone(self), connection, fresh: false };
        self.flush_other_connections(&lease);
        Some(lease)
    }

    /// [`lease`](Self::lease) without waiting: a thread opens a connection if needed, and `call` is notified.
    pub(crate) fn lease_async(
        self: &Arc<Self>,
        timeout: Option<Duration>,
        call: &Arc<dyn ReplyReceiver>,
    ) -> Result<LeaseResult, CallFailure> {
        let result = self.lease_async_or(timeout.is_some(), call, move |peer| peer.connect(timeout))?;
        if let LeaseResult::Leased(lease) = &result {
            self.flush_other_connections(lease);
        }
        Ok(result)
    }

    /// [`lease_open`](Self::lease_open) for asynchronous calls.
    pub(crate) fn lease_open_async(self: &Arc<Self>) -> Result<Lease<Arc<Self>>, CallFailure> {
        let connection = self.find_open(|_| true)?;
        Ok(Lease { peer: Arc::clone(self), connection, fresh: false })
    }

    /// Leases a connection; `connect` opens a new one.
    pub(super) fn lease_async_or(
        self: &Arc<Self>,
        is_limited: bool,
        call: &Arc<dyn ReplyReceiver>,
        connect: impl FnOnce(&Self) -> Result<ClientConnection, CallFailure> + Send + 'static,
    ) -> Result<LeaseResult, CallFailure> {
        plug_in();
        let (mut pool, choice) = self.choose(self.pool.lock(), |_| true);
        match choice {
            LeaseChoice::Take(connection) => {
                return Ok(LeaseResult::Leased(Lease { peer: Arc::clone(self), connection, fresh: false }));
            }
            LeaseChoice::Wait => {
                pool.parked.push(Arc::clone(call));
                return Ok(LeaseResult::Parked);
            }
            LeaseChoice::Open => self.begin_opening(&mut pool)?,
        }
        drop(pool);
        let (peer, opener) = (Arc::clone(self), Arc::clone(call));
        let open = move || {
            let opened = connect(&peer).map(Arc::new);
            // This call waited before those that are parked.
            let first = || match &opened {
                Err(failure) if failure.loss == RequestLoss::ConnectionShareable => opener.connection_freed(),
                opened => opener.connection_opened(opened.as_ref().map(drop).map_err(CallFailure::clone)),
            };
            peer.finish_opening(&opened, is_limited, 0, first);
        };
        let started = thread::Builder::new().name("spandrel-connect".into()).spawn(open);
        if let Err(error) = started {
            let exception = SystemException::no_resources(0, CompletionStatus::No)
                .with_detail(|| format!("the thread that connects to {} could not be started", self.address))
                .with_source(error);
            let failure = CallFailure::new(exception);
            self.finish_opening(&Err(failure.clone()), false, 0, || {});
            return Err(failure);
        }
        Ok(LeaseResult::Parked)
    }

    /// Ends a call's wait for a connection.
    pub(crate) fn unpark(&self, call: &Arc<dyn ReplyReceiver>) {
        let mut pool = self.pool.lock();
        let removed: Vec<_> = pool.parked.extract_if(.., |parked| Arc::ptr_eq(parked, call)).collect();
        drop(pool);
        drop(removed);
    }
}
