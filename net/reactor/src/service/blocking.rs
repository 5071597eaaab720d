//! A service that a thread runs to its end.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_ipc::{Family, Interest, wait_ready};
use spandrel_sync::thread;

use super::posted::PostedWork;
use super::sender::SenderRunner;
use super::thread_timers::ThreadTimers;
use super::thread_wait::ThreadWait;
use super::{Connection, Peer, Runner, Service, ServiceHandler};
use crate::CloseReason;

/// Serves the connection until it ends.
pub(crate) fn serve<F: Family, H: ServiceHandler<F>>(mut service: Service<F, H>) {
    let mut thread_timers = ThreadTimers::new();
    let reason = match catch_unwind(AssertUnwindSafe(|| run(&mut service, &mut thread_timers))) {
        Ok(Ok(())) => CloseReason::Removed,
        Ok(Err(error)) => CloseReason::Failed(error),
        Err(panic) => CloseReason::Panicked(crate::dispatch::message(panic)),
    };
    service.connection.close_senders();
    let reason = service.connection.close_reason(reason);
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
    if let Some(interval) = service.connection.entry.open_connections().check_interval() {
        thread_timers.schedule_checks(interval)?;
    }
    step(service, thread_timers, |handler, peer| handler.open(peer))?;
    loop {
        if let Some(state) = service.connection.sender.clone()
            && let SenderRunner::Thread { wait, .. } = &state.runner
        {
            return run_with_senders(service, thread_timers, &state.posted, wait);
        }
        let has_ended = service.connection.has_ended.get();
        match until_turn(service, thread_timers) {
            _ if service.connection.is_over() => return Ok(()),
            None if has_ended => return Ok(()), // the handler would never be called again
            None if service.connection.is_paused => {
                return Err(io::Error::other("a connection is paused, and has no timer or sender to resume it"));
            }
            // No wait before the transfer, which waits itself.
            None => step(service, thread_timers, |handler, peer| handler.handle_input(peer))?,
            Some(left) => {
                let ready = if has_ended || service.connection.is_paused {
                    thread::park_timeout(left);
                    Interest::NONE
                } else {
                    wait_ready(&*service.connection.stream, Interest::INPUT, Some(left))?
                };
                time_out(service, thread_timers)?;
                if !ready.is_none() && !service.connection.is_closing && !service.connection.is_paused {
                    step(service, thread_timers, |handler, peer| handler.handle_input(peer))?;
                }
                give_turn(service, thread_timers)?;
            }
        }
    }
}

/// Continues once there are senders: waits for the connection and for posted work at once.
fn run_with_senders<F: Family, H: ServiceHandler<F>>(
    service: &mut Service<F, H>,
    thread_timers: &mut ThreadTimers,
    posted: &PostedWork,
    wait: &ThreadWait,
) -> io::Result<()> {
    let mut armed = Interest::NONE;
    loop {
        if posted.is_woken() {
            take_posted(service, thread_timers)?;
        }
        if service.connection.is_over() {
            service.connection.finish_senders()?;
        }
        let Connection { stream, outbox, .. } = &service.connection;
        let has_ended = service.connection.has_ended.get();
        let interest = match outbox.is_empty() {
            false => Interest::OUTPUT,
            true if service.connection.is_over() => return Ok(()),
            true if !has_ended && service.connection.is_paused => Interest::NONE,
            true if !has_ended => Interest::INPUT,
            true if until_turn(service, thread_timers).is_some() => Interest::NONE,
            true => return Ok(()), // the handler would never be called again
        };
        // Windows shows the end of the input by this side to no wait, also if it came before.
        let is_input_ended = || cfg!(windows) && interest.contains(Interest::INPUT) && posted.is_input_ended();
        let has_work = || posted.is_woken() || is_input_ended();
        let mut ready = wait.wait(&**stream, &mut armed, interest, until_turn(service, thread_timers), has_work)?;
        if is_input_ended() {
            ready |= Interest::INPUT;
        }
        time_out(service, thread_timers)?;
        let connection = &mut service.connection;
        if ready.contains(Interest::OUTPUT) {
            let is_sent = connection.outbox.flush(&*connection.stream)?;
            connection.publish_queued();
            if is_sent && !connection.is_closing {
                connection.wants_turn = false;
                step(service, thread_timers, |handler, peer| handler.handle_sent(peer))?;
            }
        } else if ready.contains(Interest::INPUT)
            && !connection.is_closing
            && !connection.is_paused
            && connection.outbox.is_empty()
        {
            step(service, thread_timers, |handler, peer| handler.handle_input(peer))?;
        }
        give_turn(service, thread_timers)?;
    }
}

/// The time until the handler is called without input; `None` if it is not to be.
fn until_turn<F: Family, H>(service: &Service<F, H>, thread_timers: &ThreadTimers) -> Option<Duration> {
    if service.connection.wants_turn { Some(Duration::ZERO) } else { thread_timers.left() }
}

/// Calls the handler if it has requested a turn.
fn give_turn<F: Family, H: ServiceHandler<F>>(
    service: &mut Service<F, H>,
    thread_timers: &mut ThreadTimers,
) -> io::Result<()> {
    if service.connection.take_turn() {
        step(service, thread_timers, |handler, peer| handler.handle_sent(peer))?;
    }
    Ok(())
}

/// Handles what senders have posted.
fn take_posted<F: Family, H: ServiceHandler<F>>(
    service: &mut Service<F, H>,
    thread_timers: &mut ThreadTimers,
) -> io::Result<()> {
    let turn = service.connection.take_posted()?;
    for notice in turn.notices {
        if service.connection.is_closing {
            break;
        }
        step(service, thread_timers, |handler, peer| handler.handle_notice(peer, notice))?;
    }
    service.connection.is_closing |= turn.end.is_some();
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
        if thread_timers.is_check(&expired) {
            step(service, thread_timers, |handler, peer| handler.handle_check(peer))?;
        } else {
            step(service, thread_timers, |handler, peer| handler.handle_timeout(peer, expired))?;
        }
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
