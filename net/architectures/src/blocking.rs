//! One connection, served by a thread that waits in its transfers.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_ipc::inet::Stream;
use spandrel_ipc::{Shutdown, is_timeout};
use spandrel_sync::time::Instant;

use crate::open_streams::InputWaits;
use crate::session::{Phase, Protocol, Session};
use crate::{MAX_PIECE, Settings};

/// The room for octets of one receive: few pages of the stack, which a new thread or process has to fault in.
pub(crate) const ROOM: usize = 2 << 10;

/// Serves a stream to its end. An error or a panic ends this connection only.
pub(crate) fn serve<P: Protocol>(
    stream: &Stream,
    protocol: &P,
    settings: &Settings,
    waits: &InputWaits,
    buffer: &mut [u8; ROOM],
) {
    let run = AssertUnwindSafe(|| {
        let mut session = protocol.open();
        run(stream, &mut session, settings, waits, buffer)?;
        if session.may_be_reset() { stream.set_linger(Some(Duration::ZERO)) } else { Ok(()) }
    });
    match catch_unwind(run) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection ends"),
        Err(_) => tracing::error!("a session panicked, and its connection is closed"),
    }
}

// ANCHOR: run
/// Sends and receives in turn, until the session or the client ends.
fn run(
    stream: &Stream,
    session: &mut impl Session,
    settings: &Settings,
    waits: &InputWaits,
    buffer: &mut [u8; ROOM],
) -> io::Result<()> {
    let mut request_began = None;
    let mut is_sending_open = true;
    loop {
        send_output(stream, session, settings)?;
        if is_sending_open && session.has_ended_output() {
            stream.shutdown(Shutdown::Write)?;
            is_sending_open = false;
        }
        match session.phase() {
            Phase::Closing => return Ok(()),
            Phase::Idle => request_began = None,
            // The clock is read only for a request that arrives in parts.
            Phase::InRequest => {
                let began = *request_began.get_or_insert_with(Instant::now);
                if Instant::now().saturating_duration_since(began) >= settings.request {
                    session.time_out();
                    request_began = None; // what remains of the request has a time of its own
                    continue;
                }
            }
        }
        match waits.during(|| stream.recv(buffer)) {
            Ok(0) if waits.is_late() => {
                session.time_out();
                return send_output(stream, session, settings);
            }
            Ok(0) => session.end_input(),
            Ok(count) => session.receive(&buffer[..count]),
            // In a process of its own: the system limits the wait.
            Err(error) if is_timeout(&error) => {
                session.time_out();
                request_began = None;
            }
            Err(error) => return Err(error),
        }
    }
}
// ANCHOR_END: run

/// Sends all output. A client has to take each piece within the time limit of idle connections.
fn send_output(stream: &Stream, session: &mut impl Session, settings: &Settings) -> io::Result<()> {
    loop {
        let piece = session.output();
        debug_assert!(piece.len() <= MAX_PIECE, "a piece of {} octets", piece.len());
        let len = piece.len();
        if len == 0 {
            return Ok(());
        }
        let mut sent = stream.send(piece)?;
        if sent < len {
            let began = Instant::now();
            while sent < len {
                if Instant::now().saturating_duration_since(began) >= settings.idle {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes its reply too slowly"));
                }
                sent += stream.send(&session.output()[sent..])?;
            }
        }
        session.sent(len);
    }
}
