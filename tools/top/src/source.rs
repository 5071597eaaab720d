//! Where metrics come from.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The time limit of an answer of the administration.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The most octets of such an answer.
const MAX_ANSWER: u64 = 8 << 20;

/// A process whose metrics are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An HTTP endpoint: the option `-ORBMetricsEndpoint` of an ORB, or the service `Metrics` of `spandrel serve`.
    Http(SocketAddr),
    /// The UNIX-domain socket of the administration of `spandrel serve` (`Administration "-u PATH"`).
    Socket(PathBuf),
    /// The loopback port of the administration (`Administration "-p PORT"`).
    Port(u16),
}

/// The reason for which a text names no source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSource(String);

impl fmt::Display for InvalidSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSource {}

impl FromStr for Source {
    type Err = InvalidSource;

    /// Reads an address in the form `[http://]HOST:PORT[/metrics]`.
    fn from_str(text: &str) -> Result<Self, InvalidSource> {
        let address = text.strip_prefix("http://").unwrap_or(text);
        let address = address.strip_suffix("/metrics").unwrap_or(address).trim_end_matches('/');
        let invalid = |reason: &dyn fmt::Display| InvalidSource(format!("expected HOST:PORT: {reason}"));
        let mut found = address.to_socket_addrs().map_err(|error| invalid(&error))?;
        found.next().map(Self::Http).ok_or_else(|| invalid(&"the host has no address"))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(address) => write!(f, "http://{address}/metrics"),
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Port(port) => write!(f, "127.0.0.1:{port}"),
        }
    }
}

impl Source {
    /// Asks the process for its metrics, in Prometheus' text format.
    ///
    /// # Errors
    /// Those of the system, and answers that are no metrics.
    pub fn read(&self) -> io::Result<String> {
        match self {
            Self::Http(address) => spandrel_metrics::read(*address),
            #[cfg(unix)]
            Self::Socket(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                ask(&stream, &stream)
            }
            #[cfg(not(unix))]
            Self::Socket(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Port(port) => {
                let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], *port)), TIMEOUT)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                ask(&stream, &stream)
            }
        }
    }
}

/// Sends the administration's command `metrics`, and reads lines up to `ok`.
fn ask(mut writer: impl Write, reader: impl Read) -> io::Result<String> {
    writer.write_all(b"metrics\n")?;
    let mut text = String::new();
    let mut reader = BufReader::new(reader.take(MAX_ANSWER));
    loop {
        let begin = text.len();
        if reader.read_line(&mut text)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer ends before its last line"));
        }
        let line = text[begin..].trim_end();
        if line == "ok" {
            text.truncate(begin);
            return Ok(text);
        }
        if let Some(reason) = line.strip_prefix("error: ") {
            return Err(io::Error::other(reason.to_owned()));
        }
    }
}
