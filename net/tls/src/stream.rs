//! TLS connections as streams of octets.

use std::fmt;
use std::io;
use std::time::Duration;

use rustls::{Connection, ProtocolVersion, SupportedCipherSuite};
use rustls_pki_types::CertificateDer;
use spandrel_ipc::{Shutdown, Transfer, inet, is_timeout};
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Condition, Mutex};

use crate::fault::{Explain, Fault};
use crate::scratch;
use crate::session::Session;
use crate::wait::Wait;

/// A TLS connection over a stream of another family.
///
/// All methods take `&self`: one thread may send while another receives, and neither blocks the other.
/// Received octets are authentic and complete: if the connection ends without `close_notify`, that is an
/// error ([`io::ErrorKind::UnexpectedEof`]) and not the end.
///
/// *The handshake.* A stream from connecting has completed it. A stream from accepting performs it in its
/// first transfer, of any kind, or in [`handshake`](Self::handshake); so a silent peer delays no other. If it
/// is not complete within the family's [`handshake_timeout`](crate::Tls::handshake_timeout), all transfers
/// fail with [`io::ErrorKind::TimedOut`].
///
/// *Errors.* Rejections, by either side, are of the kind [`io::ErrorKind::InvalidData`];
/// [`tls_error`](crate::tls_error) returns the TLS error.
///
/// *Nonblocking sends.* A nonblocking transfer, or one that times out, may have to stop in the middle of a
/// record. It then reports one octet less than it has encrypted, 64 KiB at most, and the peer can decrypt
/// that record once the octet is sent again. That octet has to be the next one sent; otherwise the send fails
/// with [`io::ErrorKind::InvalidInput`]. So a message that was sent completely has left the stream, and one
/// that was abandoned is never received completely.
///
/// *Waiting.* A partial record, or one without data, makes the handle readable without input. A partially
/// read record is announced by [`pending`](spandrel_ipc::Pollable::pending) while the handle shows nothing.
/// [`wait_ready`](spandrel_ipc::wait_ready) and reactors handle both. One thread at a time may wait on the
/// handle; the methods that wait by themselves may be used concurrently once the handshake is complete.
///
/// *The end.* [`close_writer`](Self::close_writer) sends `close_notify`, for which there must be room in the
/// queue, and half-closes the underlying stream. It waits for room like the previous transfer. If that did
/// not wait, neither does this, and later transfers do the rest. Otherwise it waits for the time of a send,
/// at most for [`close_timeout`](crate::Tls::close_timeout), and then cuts the connection. After a send that
/// stopped in the middle it cuts the connection at once. Dropping a stream does the same. `shutdown` of both
/// ways never waits.
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

/// The settings of a family for its streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSettings {
    pub(crate) handshake_timeout: Duration,
    pub(crate) close_timeout: Duration,
    pub(crate) explain: Option<Explain>,
}

impl<S: Transfer> Stream<S> {
    pub(crate) fn new(inner: S, connection: Connection, settings: StreamSettings) -> Self {
        Self {
            inner,
            session: Mutex::new(Session::new(connection, settings.explain)),
            changed: Condition::new(),
            handshake_end: Deadline::after(settings.handshake_timeout),
            close_timeout: settings.close_timeout,
            is_nonblocking: AtomicBool::new(false),
            recv_timeout: AtomicU64::new(0),
            send_timeout: AtomicU64::new(0),
        }
    }

    /// The underlying stream, for its addresses and options. Set the blocking mode and timeouts on the TLS
    /// stream instead; transfers on the underlying stream corrupt the connection.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Completes the handshake, if it is not complete yet.
    ///
    /// # Errors
    /// The reason of the failure; [`io::ErrorKind::TimedOut`] when it timed out.
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
    /// [`io::ErrorKind::TimedOut`] on a timeout; it may be retried while
    /// [`is_handshaking`](Self::is_handshaking) and within the family's handshake timeout. Others as
    /// [`handshake`](Self::handshake).
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

    /// The time left for the handshake; `None` without a limit. A reactor that closes connections without a
    /// handshake schedules a timer for it.
    #[must_use]
    pub fn handshake_time_left(&self) -> Option<Duration> {
        self.handshake_end.remaining()
    }

    /// Whether the stream holds ciphertext that can be sent: of a partially sent record, or of TLS itself.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        let session = self.session.lock();
        session.has_output() || session.is_sending
    }

    /// Sends the [ciphertext in the stream](Self::has_unsent), such as `close_notify` of a nonblocking close;
    /// waits no longer than `timeout`, if there is one. Rarely needed, since every transfer and every wait on
    /// the handle also sends it.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] on a timeout; those of the underlying stream.
    pub fn flush(&self, timeout: Option<Duration>) -> io::Result<()> {
        let end = Deadline::after(timeout);
        self.send_output(self.session.lock(), &mut Wait::Until(end)).1
    }

    /// Encrypts with new keys from now on, and requests the same from the peer (TLS 1.3). Sent with the next
    /// transfer at the latest. Rarely needed: keys are renewed automatically.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] before the handshake is complete, and with TLS 1.2.
    pub fn refresh_keys(&self) -> io::Result<()> {
        let mut session = self.session.lock();
        session.connection.refresh_traffic_keys().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        drop(self.send_without_waiting(session));
        Ok(())
    }

    /// The time limit of `recv`.
    pub(crate) fn recv_wait(&self) -> Wait {
        self.wait(&self.recv_timeout)
    }

    /// The time limit of `send`.
    pub(crate) fn send_wait(&self) -> Wait {
        self.wait(&self.send_timeout)
    }

    fn wait(&self, timeout: &AtomicU64) -> Wait {
        if self.is_nonblocking.load(Ordering::Relaxed) {
            return Wait::No;
        }
        match timeout.load(Ordering::Relaxed) {
            0 => Wait::Until(Deadline::NEVER),
            nanoseconds => Wait::Configured(Deadline::after(Duration::from_nanos(nanoseconds))),
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
            Shutdown::Write => return self.send_close_notify(),
            Shutdown::Read => self.session.lock().is_read_shut = true,
            Shutdown::Both => return self.shut_both(|inner| inner.shutdown(Shutdown::Both)),
        }
        self.inner.shutdown(how)
    }

    /// Ends both directions. `end`: ends those of the inner stream.
    pub(crate) fn shut_both(&self, end: impl FnOnce(&S) -> io::Result<()>) -> io::Result<()> {
        let mut session = self.session.lock();
        session.is_read_shut = true;
        session.is_write_shut = true;
        drop(self.send_without_waiting(session));
        end(&self.inner)
    }

    /// Sends `close_notify`, and half-closes. During the handshake that is done at its end; if it must not
    /// wait, later.
    fn send_close_notify(&self) -> io::Result<()> {
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
        let may_wait = session.may_wait && wait_of_send.may_wait() && !session.output.is_held();
        let mut wait = if may_wait { wait_of_send.not_beyond(Deadline::after(self.close_timeout)) } else { Wait::No };
        let (mut session, result) = self.send_output(session, &mut wait);
        match result {
            Err(error) if !is_timeout(&error) => Err(error),
            _ if session.is_half_closed => Ok(()), // by another thread
            Ok(()) if !session.output.is_held() => Ok(()),
            Err(_) if !may_wait && !session.output.is_held() => Ok(()),
            // The peer must not believe that it has everything.
            result => {
                let result = if may_wait { result } else { Ok(()) };
                session.break_off(Fault::Below { os: None, kind: io::ErrorKind::BrokenPipe });
                drop(session);
                self.inner.shutdown(Shutdown::Write).and(result)
            }
        }
    }
}

/// A timeout as stored; zero is no limit.
fn nanoseconds(timeout: Option<Duration>) -> u64 {
    timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
}

/// The results of the handshake; none before it.
impl<S: Transfer> Stream<S> {
    /// The peer's verified certificates, its own first; none if it has sent none.
    #[must_use]
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.with_peer_certificates(|chain| chain.iter().map(|certificate| certificate.clone().into_owned()).collect())
    }

    /// Calls `look` with the peer's verified certificates, without a copy. `None` if it has sent none. The session is
    /// locked meanwhile.
    pub fn with_peer_certificates<R>(&self, look: impl FnOnce(&[CertificateDer<'_>]) -> R) -> Option<R> {
        self.session.lock().connection.peer_certificates().map(look)
    }

    /// The version of TLS in use; `None` before the handshake.
    #[must_use]
    pub fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.session.lock().connection.protocol_version()
    }

    /// The cipher suite that the handshake agreed on, `None` before.
    #[must_use]
    pub fn cipher_suite(&self) -> Option<SupportedCipherSuite> {
        self.session.lock().connection.negotiated_cipher_suite()
    }

    /// The application protocol that both sides have chosen (ALPN); `None` without one.
    #[must_use]
    pub fn alpn_protocol(&self) -> Option<Vec<u8>> {
        self.session.lock().connection.alpn_protocol().map(<[u8]>::to_vec)
    }

    /// The server name that the client requested (SNI); the client chooses it freely.
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
        // Errors cannot be reported any more.
        let _ = self.send_close_notify();
        if !self.session.get_mut().is_open_below() {
            return;
        }
        // Unread input in a socket (TLS 1.3 sends tickets unsolicited) would make the system reset the
        // connection, and the peer lose the last octets sent to it.
        let mut buffer = scratch::input();
        let _ = (0..MAX_DISCARDS).try_for_each(|_| match self.inner.try_recv(&mut buffer) {
            Ok(1..) => Ok(()),
            _ => Err(()),
        });
        scratch::give_input(buffer);
    }
}

/// The maximum number of receives that discard unwanted input.
const MAX_DISCARDS: usize = 4;
