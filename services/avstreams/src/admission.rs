//! The admission of senders to a flow: tokens of bulk data, shown before the first frame.
//!
//! By TCP, the first 32 octets are the token. By datagrams, a datagram `SPTK` with the token comes before the first frame,
//! again and again until the receiver confirms it with `SPOK`. The first octet is none of RTP's version 2, so that RTP
//! receivers without tokens ignore it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use spandrel::bulk::wire::{TOKEN_OCTETS, Token};
use subtle::ConstantTimeEq;

const SHOW: &[u8; 4] = b"SPTK";
pub(crate) const CONFIRM: &[u8; 4] = b"SPOK";
/// The time between two datagrams with the token.
const REPEAT: Duration = Duration::from_millis(20);

/// A token of random octets of the system.
pub(crate) fn new_token() -> io::Result<Token> {
    let mut octets = [0; TOKEN_OCTETS];
    getrandom::fill(&mut octets).map_err(io::Error::other)?;
    Ok(Token(octets))
}

/// Whether the tokens are the same, in a time that does not depend on their octets.
pub(crate) fn is_token(expected: &Token, shown: &[u8]) -> bool {
    expected.0.as_slice().ct_eq(shown).into()
}

/// The octets after the mark, if the datagram shows a token.
pub(crate) fn shown_token(datagram: &[u8]) -> Option<&[u8]> {
    datagram.strip_prefix(SHOW)
}

/// Confirms the token of a sender.
pub(crate) fn confirm(socket: &UdpSocket, to: SocketAddr) {
    // A lost datagram is asked for again.
    _ = socket.send_to(CONFIRM, to);
}

/// Shows the token at a receiver until it confirms it.
///
/// # Errors
/// A receiver that does not confirm within the time.
pub(crate) fn show(socket: &UdpSocket, to: SocketAddr, token: &Token, within: Duration) -> io::Result<()> {
    let message = [&SHOW[..], &token.0].concat();
    exchange(socket, to, &message, within, |answer| (answer == CONFIRM).then_some(()))
}

/// Sends a message until the other party answers it.
///
/// # Errors
/// No answer within the time; a socket that fails.
pub(crate) fn exchange<T>(
    socket: &UdpSocket,
    to: SocketAddr,
    message: &[u8],
    within: Duration,
    mut accept: impl FnMut(&[u8]) -> Option<T>,
) -> io::Result<T> {
    let deadline = Instant::now() + within;
    socket.set_read_timeout(Some(REPEAT))?;
    let mut buffer = [0; 64];
    while Instant::now() < deadline {
        match socket.send_to(message, to) {
            // The receiver is not there yet, or no longer; or the system has no room.
            Err(error) if is_wait(&error) => {}
            sent => drop(sent?),
        }
        let repeat = Instant::now() + REPEAT;
        while Instant::now() < repeat {
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) if from == to => {
                    if let Some(answer) = accept(&buffer[..length]) {
                        return Ok(answer);
                    }
                }
                Ok(_) => {}
                Err(error) if is_wait(&error) => {
                    // The system of a receiver that is not there may answer at once.
                    std::thread::sleep(repeat.saturating_duration_since(Instant::now()));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("the receiver at {to} did not answer within {within:?}")))
}

/// Whether a socket only has nothing to read yet, or a datagram was not taken.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}
