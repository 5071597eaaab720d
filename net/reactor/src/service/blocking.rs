//! A service that a thread runs to its end.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_ipc::{Family, Interest, wait_ready};
use spandrel_sync::thread;

use super::thread_timers::ThreadTimers;
use super::{Peer, Runner, Service, ServiceHandler};
use crate::CloseReason;

/// Serves the connection until it ends.
pub(crate) fn serve<F: Family, H: ServiceHandler<F>>(mut service: Service<F, H>) {
    let mut thread_timers = ThreadTimers::new();
    let reason = match catch_unwind(AssertUnwindSafe(|| run(&mut service, &mut thread_timers))) {
        Ok(Ok(())) => CloseReason::Removed,
        Ok(Err(error)) => CloseReason::Failed(error),
        Err(panic) => CloseReason::Panicked(crate::dispatch::message(panic)),
    };
    tracing::debug!(remote = %service.connection.remote, ?reason, "a connection ends");
    let close = AssertUnwindSafe(|| {
        let mut peer = Peer { connection: &mut service.connection, runner: Runner::Thread(&mut thread_timers) };
        service.handler.close(&mut peer, &reason);
    });
    if catch_unwind(close).is_err() {
        tracing::error!("a handler panicked in `close`");
    }
}

fn run<F: Family, H: ServiceHandler<F>>(
    service: &mut Service<F, H>,
    thread_timers: &mut ThreadTimers,
) -> io::Result<()> {
    step(service, thread_timers, |handler, peer| handler.open(peer))?;
    while !service.connection.is_over() {
        let has_ended = service.connection.has_ended.get();
        match thread_timers.left() {
            None if has_ended => break, // the handler would never be called again
            // No wait before the transfer, which waits itself.
            None => step(service, thread_timers, |handler, peer| handler.handle_input(peer))?,
            Some(left) => {
                let ready = if has_ended {
                    thread::park_timeout(left);
                    Interest::NONE
                } else {
                    wait_ready(&*service.connection.stream, Interest::INPUT, Some(left))?
                };
                time_out(service, thread_timers)?;
                if !ready.is_none() && !service.connection.is_closing {
                    step(service, thread_timers, |handler, peer| handler.handle_input(peer))?;
                }
            }
        }
    }
    Ok(())
}

/// Calls the handler for the timers that have expired by now: not for those that expire meanwhile, or they
/// could keep it from its input.
fn time_out<F: Family, H: ServiceHandler<F>>(
    service: &mut Service<F, H>,
    thread_timers: &mut ThreadTimers,
) -> io::Result<()> {
    let now = thread_timers.now();
    while !service.connection.is_closing
        && let Some(expired) = thread_timers.expired(now)
    {
        step(service, thread_timers, |handler, peer| handler.handle_timeout(peer, expired))?;
    }
    Ok(())
}

fn step<F: Family, H: ServiceHandler<F>>(
    service: &mut Service<F, H>,
    thread_timers: &mut ThreadTimers,
    call: impl FnOnce(&mut H, &mut Peer<'_, F>) -> io::Result<()>,
) -> io::Result<()> {
    let mut peer = Peer { connection: &mut service.connection, runner: Runner::Thread(thread_timers) };
    match call(&mut service.handler, &mut peer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        result => result,
    }
}
