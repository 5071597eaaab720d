//! Carrying octets both ways, encrypted.

use std::fmt;
use std::io;
use std::time::Duration;

use rustls::{Connection, ProtocolVersion, SupportedCipherSuite};
use rustls_pki_types::CertificateDer;
use spandrel_ipc::{Shutdown, Transfer, inet, is_timeout};
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::{Condition, Mutex};

use crate::fault::Fault;
use crate::scratch;
use crate::session::Session;
use crate::wait::{Deadline, Patience, Wait};

/// A TLS connection over a stream of another family.
///
/// All methods take `&self`: one thread may send while another receives, and neither keeps the other waiting. What is received is
/// authentic and complete: if the connection ends without the peer's leave, that is an error ([`io::ErrorKind::UnexpectedEof`]) and
/// not the end.
///
/// *The handshake.* A stream that was connected has had it. One that was accepted has it in its first transfer, of whichever kind, or in
/// [`handshake`](Self::handshake); so a peer that connects and says nothing keeps nobody else waiting. If it is not complete within
/// the family's [`handshake_timeout`](crate::Tls::handshake_timeout), transfers fail with [`io::ErrorKind::TimedOut`] for ever.
///
/// *Errors.* What TLS refuses, or the peer of us, is of the kind [`io::ErrorKind::InvalidData`], and [`tls_error`](crate::tls_error) tells
/// what it was.
///
/// *Sending without waiting.* When a transfer may not wait, or no longer, it may have to stop in the middle of a record. It then says one
/// octet less than it has encrypted, 64 KiB at most, and the peer can decrypt that record once the octet was sent again. It has to be
/// the next that is sent, as in any stream whose reader is to understand the writer; [`io::ErrorKind::InvalidInput`] says that it was
/// not. So a message of which all was sent has left the stream, and one that was given up is never received whole.
///
/// *Waiting.* A record that was received in part, or carries nothing for us, makes the handle readable for nothing, and one that was
/// taken in part is announced by [`pending`](spandrel_ipc::Pollable::pending) while the handle is silent.
/// [`wait_ready`](spandrel_ipc::wait_ready) and reactors know. One party at a time may wait on the handle; the methods that wait by
/// themselves may be used beside it once the handshake is complete.
///
/// *The end.* [`close_writer`](Self::close_writer) tells the peer (`close_notify`), for which there must be room among what is on its
/// way, and half-closes the stream below. It waits for room like the transfer before it: not at all if that did not wait, then what is
/// left is done by later transfers; otherwise for the time of a send, but no longer than [`close_timeout`](crate::Tls::close_timeout)
/// says, and then it cuts the connection. After a send that stopped in the middle it cuts the connection at once. Dropping a stream is
/// the same. `shutdown` of both ways never waits.
pub struct Stream<S: Transfer = inet::Stream> {
    pub(crate) inner: S,
    pub(crate) session: Mutex<Session>,
    /// A thread has received, or sent.
    pub(crate) changed: Condition,
    pub(crate) handshake_end: Deadline,
    close_timeout: Duration,
    is_nonblocking: AtomicBool,
    recv_timeout: AtomicU64,
    send_timeout: AtomicU64,
}

impl<S: Transfer> Stream<S> {
    pub(crate) fn new(inner: S, connection: Connection, patience: Patience) -> Self {
        Self {
            inner,
            session: Mutex::new(Session::new(connection)),
            changed: Condition::new(),
            handshake_end: Deadline::after(patience.handshake),
            close_timeout: patience.close,
            is_nonblocking: AtomicBool::new(false),
            recv_timeout: AtomicU64::new(0),
            send_timeout: AtomicU64::new(0),
        }
    }

    /// The stream below, for its addresses and options. Whether it blocks, and its time-outs, are to be set here instead; octets that
    /// are transferred past this one ruin the connection.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Completes the handshake, if it is not complete yet.
    ///
    /// # Errors
    /// Why there is no connection; [`io::ErrorKind::TimedOut`] when the peer took too long.
    pub fn handshake(&self) -> io::Result<()> {
        self.handshake_as(Wait::Until(Deadline::NEVER))
    }

    /// Like [`handshake`](Self::handshake), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it is not complete; others as [`handshake`](Self::handshake).
    pub fn try_handshake(&self) -> io::Result<()> {
        self.handshake_as(Wait::No)
    }

    /// Like [`handshake`](Self::handshake), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the time ran out; it may be tried again if [`is_handshaking`](Self::is_handshaking) and the
    /// family's time for handshakes is not over. Others as [`handshake`](Self::handshake).
    pub fn handshake_within(&self, timeout: Duration) -> io::Result<()> {
        self.handshake_as(Wait::within(timeout))
    }

    pub(crate) fn handshake_as(&self, mut wait: Wait) -> io::Result<()> {
        let (session, result) = self.establish(self.session.lock(), &mut wait);
        result?;
        self.send_output(session, &mut wait).1
    }

    /// Whether the handshake is not complete.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.session.lock().is_handshaking()
    }

    /// How much of the time for the handshake is left; `None` is for ever. A reactor that is to close connections on which no handshake
    /// is made schedules a timer for that long.
    #[must_use]
    pub fn handshake_time_left(&self) -> Option<Duration> {
        self.handshake_end.left()
    }

    /// Whether something that can be sent lies in the stream: of a record that was stopped in the middle, or of what TLS says by itself.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        let session = self.session.lock();
        session.has_output() || session.is_sending
    }

    /// Sends what [lies in the stream](Self::has_unsent), such as the end that was told without waiting; waits no longer than `timeout`, if there is one. Not
    /// needed in general: every transfer does it, and whoever waits on the handle.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the time ran out; those of the stream below.
    pub fn flush(&self, timeout: Option<Duration>) -> io::Result<()> {
        let end = timeout.map_or(Deadline::NEVER, Deadline::after);
        self.send_output(self.session.lock(), &mut Wait::Until(end)).1
    }

    /// Encrypts with new keys from now on, and asks the peer to do the same (TLS 1.3). Sent with the next transfer at the latest. Not
    /// needed in general: keys are renewed when they have been used enough.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] before the handshake is complete, and with TLS 1.2.
    pub fn refresh_keys(&self) -> io::Result<()> {
        let mut session = self.session.lock();
        session.connection.refresh_traffic_keys().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        drop(self.send_what_can_be(session));
        Ok(())
    }

    /// How long `recv` waits.
    pub(crate) fn recv_wait(&self) -> Wait {
        self.wait(&self.recv_timeout)
    }

    /// How long `send` waits.
    pub(crate) fn send_wait(&self) -> Wait {
        self.wait(&self.send_timeout)
    }

    fn wait(&self, timeout: &AtomicU64) -> Wait {
        if self.is_nonblocking.load(Ordering::Relaxed) {
            return Wait::No;
        }
        match timeout.load(Ordering::Relaxed) {
            0 => Wait::Until(Deadline::NEVER),
            nanoseconds => Wait::AsSet(Deadline::after(Duration::from_nanos(nanoseconds))),
        }
    }

    pub(crate) fn keep_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.inner.set_recv_timeout(timeout)?;
        self.recv_timeout.store(nanoseconds(timeout), Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn keep_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.inner.set_send_timeout(timeout)?;
        self.send_timeout.store(nanoseconds(timeout), Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn keep_nonblocking(&self, on: bool) {
        self.is_nonblocking.store(on, Ordering::Relaxed);
    }

    pub(crate) fn shut(&self, how: Shutdown) -> io::Result<()> {
        match how {
            Shutdown::Write => return self.tell_close(),
            Shutdown::Read => self.session.lock().is_read_shut = true,
            Shutdown::Both => {
                let mut session = self.session.lock();
                session.is_read_shut = true;
                session.is_write_shut = true;
                drop(self.send_what_can_be(session));
            }
        }
        self.inner.shutdown(how)
    }

    /// Tells the peer that no more comes, and half-closes. In the middle of the handshake that is done at its end; also later if it must
    /// not wait.
    fn tell_close(&self) -> io::Result<()> {
        let mut session = self.session.lock();
        session.is_write_shut = true;
        if session.is_handshaking() {
            return Ok(());
        }
        if session.is_dead() {
            drop(session);
            return self.inner.shutdown(Shutdown::Write);
        }
        let wait_of_send = self.send_wait();
        let is_patient = session.is_patient && wait_of_send.is_patient() && !session.output.is_held();
        let mut wait = if is_patient { wait_of_send.not_beyond(Deadline::after(self.close_timeout)) } else { Wait::No };
        let (mut session, result) = self.send_output(session, &mut wait);
        match result {
            Err(error) if !is_timeout(&error) => Err(error),
            _ if session.is_half_closed => Ok(()), // by another thread
            Ok(()) if !session.output.is_held() => Ok(()),
            Err(_) if !is_patient && !session.output.is_held() => Ok(()),
            // The peer is not to believe that it has everything.
            result => {
                let result = if is_patient { result } else { Ok(()) };
                session.break_off(Fault::Below { os: None, kind: io::ErrorKind::BrokenPipe });
                drop(session);
                self.inner.shutdown(Shutdown::Write).and(result)
            }
        }
    }
}

/// As it is kept; zero is for ever.
fn nanoseconds(timeout: Option<Duration>) -> u64 {
    timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
}

/// What was agreed in the handshake; nothing is known before.
impl<S: Transfer> Stream<S> {
    /// The peer's certificates, its own first, as they were verified; nothing if it has shown none.
    #[must_use]
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        let session = self.session.lock();
        Some(
            session
                .connection
                .peer_certificates()?
                .iter()
                .map(|certificate| certificate.clone().into_owned())
                .collect(),
        )
    }

    /// The version of TLS.
    #[must_use]
    pub fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.session.lock().connection.protocol_version()
    }

    /// The cipher suite.
    #[must_use]
    pub fn cipher_suite(&self) -> Option<SupportedCipherSuite> {
        self.session.lock().connection.negotiated_cipher_suite()
    }

    /// The application protocol (ALPN).
    #[must_use]
    pub fn alpn_protocol(&self) -> Option<Vec<u8>> {
        self.session.lock().connection.alpn_protocol().map(<[u8]>::to_vec)
    }

    /// By which name the client asked for this server (SNI). The client can say what it likes.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        match &self.session.lock().connection {
            Connection::Server(server) => server.server_name().map(str::to_owned),
            Connection::Client(_) => None,
        }
    }
}

impl<S: Transfer> fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Stream");
        out.field("inner", &self.inner);
        if let Some(session) = self.session.try_lock() {
            out.field("is_handshaking", &session.is_handshaking());
            out.field("version", &session.connection.protocol_version());
        }
        out.finish_non_exhaustive()
    }
}

impl<S: Transfer> Drop for Stream<S> {
    fn drop(&mut self) {
        if self.session.get_mut().is_handshaking() {
            return;
        }
        // Nobody is left to be told what went wrong.
        let _ = self.tell_close();
        if !self.session.get_mut().is_open_below() {
            return;
        }
        // What lies unread in a socket (TLS 1.3 sends tickets unasked) would make the system reset the connection, and the peer lose
        // what was just sent to it.
        let mut buffer = scratch::input();
        let _ = (0..MOST_UNREAD).try_for_each(|_| match self.inner.try_recv(&mut buffer) {
            Ok(1..) => Ok(()),
            _ => Err(()),
        });
        scratch::give_input(buffer);
    }
}

/// How many times something is received that nobody wants any more.
const MOST_UNREAD: usize = 4;
