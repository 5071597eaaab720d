//! The kinds of failed requests.

use std::io;

use spandrel::net::ipc::is_timeout;

/// The reason why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// No program listens at the address.
    Refused,
    /// The server reset the connection.
    Reset,
    /// A step took longer than the timeout.
    TimedOut,
    /// No local port was free: the range of ephemeral ports is exhausted, mostly by connections in TIME_WAIT.
    PortsExhausted,
    /// This process, or the system, has too many open descriptors.
    DescriptorsExhausted,
    /// The network or the host cannot be reached.
    Unreachable,
    /// The server closed the connection before its greeting was complete.
    NoGreeting,
    /// The first octets are not the greeting.
    WrongGreeting,
    /// The server closed the connection before the answer was complete.
    ShortReply,
    /// The answer has other octets than `A`.
    WrongReply,
    /// All workers were occupied for longer than the timeout after the request was due.
    NotSent,
    /// Any other error of the system.
    Other,
}

impl FailureKind {
    /// All kinds in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Refused,
        Self::Reset,
        Self::TimedOut,
        Self::PortsExhausted,
        Self::DescriptorsExhausted,
        Self::Unreachable,
        Self::NoGreeting,
        Self::WrongGreeting,
        Self::ShortReply,
        Self::WrongReply,
        Self::NotSent,
        Self::Other,
    ];

    /// The word for it in results and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::TimedOut => "timed out",
            Self::PortsExhausted => "ports exhausted",
            Self::DescriptorsExhausted => "descriptors exhausted",
            Self::Unreachable => "unreachable",
            Self::NoGreeting => "no greeting",
            Self::WrongGreeting => "wrong greeting",
            Self::ShortReply => "short reply",
            Self::WrongReply => "wrong reply",
            Self::NotSent => "not sent",
            Self::Other => "other",
        }
    }
}

/// The kind of an error of the system. The end of the stream depends on the step, and is not among them.
impl From<&io::Error> for FailureKind {
    fn from(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;

        #[cfg(unix)]
        match rustix::io::Errno::from_io_error(error) {
            Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => return Self::DescriptorsExhausted,
            // The time limit of connecting is over.
            Some(rustix::io::Errno::INPROGRESS) => return Self::TimedOut,
            _ => {}
        }
        match error.kind() {
            _ if is_timeout(error) => Self::TimedOut,
            Kind::ConnectionRefused => Self::Refused,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => Self::Reset,
            Kind::AddrInUse | Kind::AddrNotAvailable => Self::PortsExhausted,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => Self::Unreachable,
            _ => Self::Other,
        }
    }
}
