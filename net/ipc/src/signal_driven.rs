//! Signal-driven input: the system sends a signal when an endpoint has input (paper 000,
//! `ACE_IPC_SAP::enable` with SIGIO and SIGURG).
//!
//! A reactor serves it (`Registry::on_signal` of `spandrel-reactor`): the signal becomes an event, whose
//! handler receives until nothing is left. SIGIO ends a process that does not handle it. So the handler comes
//! first.
//!
//! Windows has no such signals, and this module neither.

use std::io;

use crate::{Pollable, sys::signal_driven as sys};

/// The process or thread to which the system sends the signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignalOwner {
    /// This process: any thread that does not block the signal. A child of a `fork` does not get it.
    #[default]
    Process,
    /// The thread that enables the signal.
    #[cfg(target_os = "linux")]
    Thread,
}

/// The signal for input and its receiver; the default is SIGIO for this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputSignal {
    owner: SignalOwner,
    /// The signal's number, or zero for SIGIO.
    #[cfg(target_os = "linux")]
    number: i32,
}

impl InputSignal {
    /// SIGIO, for this process. Endpoints share it: it does not tell which of them has input.
    pub const IO: Self = Self {
        owner: SignalOwner::Process,
        #[cfg(target_os = "linux")]
        number: 0,
    };

    /// The real-time signal with this offset from the first one of this process. Each endpoint, or group of
    /// endpoints, that is to be told apart needs its own. The system queues real-time signals; when its queue
    /// is full, it sends SIGIO instead, so that this must be handled as well.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the system has no such signal: there are about thirty.
    #[cfg(target_os = "linux")]
    pub fn real_time(offset: i32) -> io::Result<Self> {
        let (first, last) = (libc::SIGRTMIN(), libc::SIGRTMAX());
        match first.checked_add(offset) {
            Some(number) if (first..=last).contains(&number) => Ok(Self { owner: SignalOwner::Process, number }),
            _ => {
                let text = format!("there is no real-time signal {offset}: the last one is {}", last - first);
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
        }
    }

    /// Sets the process or thread to which the system sends the signal.
    #[must_use]
    pub fn owner(mut self, owner: SignalOwner) -> Self {
        self.owner = owner;
        self
    }

    /// The signal's number on this system.
    #[must_use]
    pub fn number(self) -> i32 {
        #[cfg(target_os = "linux")]
        if self.number != 0 {
            return self.number;
        }
        libc::SIGIO
    }
}

/// Endpoints whose input is announced by a signal: all that a reactor can wait for.
///
/// The signal says that the handle had news: octets, a connection, a datagram, the end of the stream, or room
/// for sending. Several of them may be one signal, and a signal may find nothing left. So the receiver takes
/// input without waiting, until the call fails with [`WouldBlock`](io::ErrorKind::WouldBlock). Input from
/// before the call of [`enable_signal`](Self::enable_signal) is not announced.
///
/// A family that is not [plain](Pollable::is_plain) has input that its handle does not show: call
/// [`prepare`](Pollable::prepare) for [`INPUT`](crate::Interest::INPUT) after it was enabled and whenever
/// nothing is left, and receive again if that is ready.
///
/// The setting belongs to the endpoint's open file: its clones, and the processes to which it is passed,
/// share it.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use spandrel_ipc::signal_driven::SignalDriven;
/// use spandrel_ipc::spipe;
///
/// let has_input = Arc::new(AtomicBool::new(false));
/// # #[cfg(target_os = "linux")] {
/// signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::clone(&has_input))?;
///
/// let (near, far) = spipe::pair()?;
/// near.enable_signal()?;
/// far.send_n(b"hello")?;
/// while !has_input.load(Ordering::SeqCst) {
///     std::thread::yield_now();
/// }
/// assert_eq!(near.try_recv(&mut [0; 8])?, 5);
/// near.disable_signal()?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait SignalDriven: Pollable {
    /// Sends SIGIO to this process when there is input.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn enable_signal(&self) -> io::Result<()> {
        self.enable_signal_with(InputSignal::IO)
    }

    /// Sends that signal when there is input.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn enable_signal_with(&self, signal: InputSignal) -> io::Result<()> {
        let handle = self.handle();
        match signal.owner {
            SignalOwner::Process => own(self)?,
            #[cfg(target_os = "linux")]
            SignalOwner::Thread => sys::set_owner_thread(handle, rustix::thread::gettid().as_raw_nonzero().get())?,
        }
        #[cfg(target_os = "linux")]
        sys::set_signal(handle, signal.number)?;
        sys::set_announced(handle, true)
    }

    /// Sends no signal for input any more. One that was sent already may still arrive.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn disable_signal(&self) -> io::Result<()> {
        sys::set_announced(self.handle(), false)
    }

    /// Whether input is announced by a signal.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn is_signal_enabled(&self) -> io::Result<bool> {
        sys::is_announced(self.handle())
    }
}

impl<P: Pollable + ?Sized> SignalDriven for P {}

/// Signals for urgent data (SIGURG).
impl crate::inet::Stream {
    /// Sends SIGURG to this process when urgent data arrives ([`recv_urgent`](Self::recv_urgent)). A process
    /// that does not handle it is not affected.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn enable_urgent_signal(&self) -> io::Result<()> {
        own(self)
    }

    /// Sends no SIGURG any more. Where input is announced by a signal, too, its receiver continues to get
    /// both.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn disable_urgent_signal(&self) -> io::Result<()> {
        if self.is_signal_enabled()? { Ok(()) } else { sys::set_owner(self.handle(), 0) }
    }
}

/// Sends the signals of an endpoint to this process.
fn own(endpoint: &(impl Pollable + ?Sized)) -> io::Result<()> {
    sys::set_owner(endpoint.handle(), rustix::process::getpid().as_raw_nonzero().get())
}
