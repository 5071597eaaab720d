//! Requests by datagram (DIOP). They get no replies, and the server keeps no state of their senders.
//!
//! The reactor reads them, and the pool's threads run them side by side, up to a limit. Requests above the
//! limit are lost, as datagrams may be. A datagram that is no request is dropped and counted, with no effect
//! on others.

use std::{io, sync::OnceLock};

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{
    CompletionStatus, GiopError, Message, RequestHeader, SystemException, TransmissionCodeSets,
    datagram::read_datagram, minor,
};
use spandrel_ipc::{Pollable, inet};
use spandrel_orb::{
    Orb, Spawn,
    internal::{ServerSettings, WeakOrb, cancellation::CancellationSource},
    statistics::Event,
};
use spandrel_reactor::{Context, EventHandler};
use spandrel_sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    time::Instant,
};
use spandrel_transport::{Address, DIOP};

use crate::{
    connection::link,
    resources::ServingOrb,
    unordered_requests,
    upcall::{
        origin::{AnswerKind, RequestKey, RequestOrigin, UnusedSource, UpcallServices},
        received_request::{ReceivedRequest, RequestContext},
    },
};

/// The most requests that run or wait for a thread at once.
const MAX_RUNNING: usize = 1024;
/// The most datagrams that are read before other handlers are served.
const MAX_AT_ONCE: usize = 64;

/// The handler that reads the datagrams of one socket.
pub(super) struct Datagrams {
    pub(super) socket: inet::Dgram,
    pub(super) orb: WeakOrb,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) room: Vec<u8>,
    pub(super) running: Arc<AtomicUsize>,
    /// The number of deferred requests: held ones, and those whose servants continue without a thread.
    pub(super) deferred: Arc<AtomicUsize>,
}

/// The sender of a request.
#[derive(Clone, Debug)]
struct Sender {
    orb: Orb,
    address: Arc<Address>,
    settings: Arc<ServerSettings>,
    code_sets: TransmissionCodeSets,
    deferred: Arc<AtomicUsize>,
}

/// Counts a request as running.
struct RequestCount(Arc<AtomicUsize>);

impl Drop for RequestCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Datagrams {
    fn take(&self, orb: &Orb, octets: &[u8], from: inet::Addr) {
        let address = Address::new(DIOP, from.to_string());
        if self.settings.rules.rank(&address).is_none() {
            orb.statistics().note(Event::RefusedForAddress);
            tracing::debug!(%from, "datagram rejected by -ORBServerTransportRule");
            return;
        }
        let message = match read_datagram(octets) {
            Ok(message) => message,
            Err(error) => {
                orb.statistics().note(Event::DatagramRefused);
                tracing::debug!(%from, %error, "datagram rejected: it is no request");
                return;
            }
        };
        let running = RequestCount(Arc::clone(&self.running));
        if self.running.fetch_add(1, Ordering::SeqCst) >= MAX_RUNNING {
            orb.statistics().note(Event::DatagramLost);
            return;
        }
        orb.statistics().note(Event::DatagramReceived);
        let sender = Sender {
            orb: orb.clone(),
            address: Arc::new(address),
            settings: Arc::clone(&self.settings),
            code_sets: TransmissionCodeSets::UNNEGOTIATED,
            deferred: Arc::clone(&self.deferred),
        };
        let mut job = Some((sender, message, running));
        let task = Box::pin(std::future::poll_fn(move |_| {
            if let Some((sender, message, _running)) = job.take() {
                sender.run(&message);
            }
            std::task::Poll::Ready(())
        }));
        match orb.resources().pool.workers() {
            Ok(workers) => workers.spawn(task),
            Err(error) => {
                log_limited!(error, orb.resources(), "no thread for datagrams", %error, "no threads for requests by datagram");
            }
        }
    }
}

impl EventHandler for Datagrams {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.socket)
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        let Some(orb) = self.orb.upgrade() else {
            context.close();
            return Ok(());
        };
        for _ in 0..MAX_AT_ONCE {
            let mut room = std::mem::take(&mut self.room);
            let received = self.socket.try_recv_from(&mut room);
            if let Ok((received, from)) = &received {
                if received.is_truncated() {
                    orb.statistics().note(Event::DatagramRefused);
                } else {
                    self.take(&orb, &room[..received.len()], *from);
                }
            }
            self.room = room;
            match received {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An example is a report that a destination port has no listener. It is of no use here.
                Err(error) => tracing::debug!(%error, "cannot read a datagram"),
            }
        }
        Ok(())
    }
}

impl Sender {
    fn run(mut self, message: &Message) {
        let orb = self.orb.clone();
        let address = Arc::clone(&self.address);
        let name = address.address();
        let unreadable =
            |error: &GiopError| tracing::debug!(from = name, %error, "cannot decode a request by datagram");
        unordered_requests::run(&orb, name, || self.request(message), unreadable);
    }

    fn request(&mut self, message: &Message) -> Result<(), GiopError> {
        let orb = self.orb.clone();
        let mut arguments = message.decoder(self.settings.limits).with_binder(&orb);
        let request = RequestHeader::decode(&mut arguments)?;
        // Each request states the code sets of its own text.
        let code_sets = OnceLock::new();
        let contexts = &request.service_contexts;
        let remember = || link::record_code_sets(&code_sets, contexts);
        let request_context = RequestContext::from_contexts(contexts, self.settings.context_limits, remember);
        self.code_sets = code_sets.get().copied().unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
        let cancellation = self.cancellation_to(request_context.deadline.and_then(|deadline| deadline.answer));
        let request = ReceivedRequest::new(&*self, message, &request).with_context(Some(&request_context));
        unordered_requests::serve(&request, &cancellation, self.code_sets, &mut arguments);
        Ok(())
    }
}

impl Sender {
    fn cancellation_to(&self, deadline: Option<Instant>) -> Arc<CancellationSource> {
        CancellationSource::of_peer(&self.address, None, WeakOrb::of(&self.orb), deadline)
    }
}

impl RequestOrigin for Sender {
    fn orb(&self) -> &Orb {
        &self.orb
    }

    fn services(&self) -> &dyn UpcallServices {
        &**self.orb.resources()
    }

    fn name(&self) -> &str {
        self.address.address()
    }

    fn peer_address(&self) -> Option<&Arc<Address>> {
        Some(&self.address)
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        let wire = Wire { limits: self.settings.limits, ..Wire::new(self.settings.order, version) };
        self.code_sets.on(wire)
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        let TransmissionCodeSets { char_set, wchar_set } = self.code_sets;
        message.decoder(self.settings.limits).with_binder(&self.orb).with_code_sets(char_set, wchar_set)
    }

    /// Drops the answer: a datagram has no reply.
    fn send(&self, _answer: &Encoder<'_>, _kind: AnswerKind) -> Result<(), SystemException> {
        Ok(())
    }

    fn shared(&self) -> Arc<dyn RequestOrigin> {
        Arc::new(self.clone())
    }

    fn cancellation_source(&self, _request_key: RequestKey, deadline: Option<Instant>) -> Arc<CancellationSource> {
        self.cancellation_to(deadline)
    }

    /// All senders share one limit, because the source address of a datagram proves nothing.
    fn enter_deferred(
        &self,
        _request_key: RequestKey,
        _octets: usize,
        unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        let limit = self.settings.max_deferred;
        if self.deferred.fetch_add(1, Ordering::SeqCst) < limit {
            return Ok((0, self.cancellation_to(unused.deadline)));
        }
        self.deferred.fetch_sub(1, Ordering::SeqCst);
        self.orb.statistics().refused_deferred();
        let detail =
            || format!("{limit} requests by datagram are deferred, which is the limit (-ORBMaxDeferredRequests)");
        Err(SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(detail))
    }

    fn leave_deferred(&self, _key: u64) {
        self.deferred.fetch_sub(1, Ordering::SeqCst);
    }
}
