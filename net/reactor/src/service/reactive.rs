//! A service that a reactor runs.

use std::io;
use std::net::Shutdown;

use spandrel_ipc::{Family, Interest, Pollable, Transfer as _};

use super::{Connection, Peer, Runner, Service, ServiceHandler};
use crate::{CloseReason, Context, EventHandler, Expired};

/// An event handler for one connection: queues the octets that the peer has not taken, and delivers no input
/// meanwhile.
#[derive(Debug)]
pub(crate) struct Served<F: Family, H> {
    connection: Connection<F>,
    handler: H,
    /// The interest registered with the reactor.
    interest: Interest,
    /// The number of the last check of the server's connections that it has seen.
    checks: u64,
    /// It has ended its input, since the server drains its connections.
    is_draining: bool,
}

impl<F: Family, H: ServiceHandler<F>> Served<F, H> {
    /// The interest at registration: input alone.
    pub(crate) const INTEREST: Interest = Interest::INPUT;

    pub(crate) fn new(service: Service<F, H>) -> Self {
        let Service { connection, handler } = service;
        Self { connection, handler, interest: Self::INTEREST, checks: 0, is_draining: false }
    }

    /// Calls the handler, and then carries out its requests.
    #[inline]
    fn call(
        &mut self,
        context: &Context<'_>,
        call: impl FnOnce(&mut H, &mut Peer<'_, F>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut peer = Peer { connection: &mut self.connection, runner: Runner::Reactor(context) };
        match call(&mut self.handler, &mut peer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => result?,
        }
        self.settle(context)
    }

    /// Ends the input, so that the handler receives the octets that have arrived, and then the end.
    fn end_input(&self, context: &Context<'_>) {
        let _ = self.connection.stream.shutdown(Shutdown::Read); // fails on a stream that has already ended
        // Where the handle does not show the end of the input (shared memory), the stream has to be checked again.
        context.resume(context.id());
        if cfg!(windows) {
            context.mark_ready(context.id(), Interest::INPUT);
        }
    }

    /// Handles what senders have posted.
    fn take_posted(&mut self, context: &Context<'_>) -> io::Result<()> {
        let turn = self.connection.take_posted()?;
        for notice in turn.notices {
            if self.connection.is_closing {
                break;
            }
            self.call(context, |handler, peer| handler.handle_notice(peer, notice))?;
        }
        if turn.has_more {
            context.wake_handler(context.id());
        }
        self.connection.is_closing |= turn.end.is_some();
        self.settle(context)
    }

    /// Sets the interest in the next events: output while octets are queued, otherwise input until that has
    /// ended.
    #[inline]
    fn settle(&mut self, context: &Context<'_>) -> io::Result<()> {
        if self.connection.is_over() {
            self.connection.finish_senders()?;
        }
        self.connection.publish_queued();
        let interest = if !self.connection.outbox.is_empty() {
            Interest::OUTPUT
        } else if self.connection.is_over() {
            context.close();
            return Ok(());
        } else if self.connection.has_ended.get() || self.connection.is_paused {
            Interest::NONE // its timers, turns and notices continue
        } else {
            Interest::INPUT
        };
        if interest != self.interest {
            self.interest = interest;
            context.set_interest(interest);
        }
        Ok(())
    }
}

impl<F: Family, H: ServiceHandler<F>> EventHandler for Served<F, H> {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&*self.connection.stream)
    }

    fn handle_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        let entry = &self.connection.entry;
        self.checks = entry.open_connections().checks();
        entry.open_connections().set_handler(entry, context, context.id());
        self.call(context, |handler, peer| handler.open(peer))
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        if self.connection.is_paused {
            return Ok(()); // found before the interest changed; it is found again with the next interest in input
        }
        self.call(context, |handler, peer| handler.handle_input(peer))
    }

    fn handle_output(&mut self, context: &Context<'_>) -> io::Result<()> {
        if !self.connection.outbox.flush(&*self.connection.stream)? {
            self.connection.publish_queued();
            return Ok(());
        }
        if self.connection.is_closing {
            return self.settle(context);
        }
        self.connection.wants_turn = false;
        self.call(context, |handler, peer| handler.handle_sent(peer))
    }

    fn handle_timeout(&mut self, context: &Context<'_>, timer: Expired) -> io::Result<()> {
        self.call(context, |handler, peer| handler.handle_timeout(peer, timer))
    }

    fn handle_wakeup(&mut self, context: &Context<'_>) -> io::Result<()> {
        let open_connections = self.connection.entry.open_connections();
        if !self.is_draining && open_connections.is_draining() {
            self.is_draining = true;
            self.end_input(context);
        }
        let checks = open_connections.checks();
        if std::mem::replace(&mut self.checks, checks) != checks {
            self.call(context, |handler, peer| handler.handle_check(peer))?;
        }
        if self.connection.take_turn() {
            self.call(context, |handler, peer| handler.handle_sent(peer))?;
        }
        self.take_posted(context)
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        self.connection.close_senders();
        let reason = self.connection.close_reason(reason);
        let mut peer = Peer { connection: &mut self.connection, runner: Runner::Reactor(context) };
        self.handler.close(&mut peer, &reason);
    }
}
