//! Metrics of other processes, read from their endpoints by HTTP.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The most octets of an answer.
const MAX_ANSWER: u64 = 8 << 20;
/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest wait for octets at a time, after which the time limit is looked at.
const STEP: Duration = Duration::from_millis(200);

/// Reads the text of the metrics at an endpoint, such as that of an ORB (`-ORBMetricsEndpoint`): the path `/metrics`.
///
/// # Errors
/// Those of the system; an answer that is not whole within two seconds, larger than 8 MiB, or no success.
pub fn read(address: SocketAddr) -> io::Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_read_timeout(Some(STEP))?;
    // In HTTP/1.0 the answer ends with the connection, and has no chunks.
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\nAccept: text/plain\r\n\r\n")?;
    let (mut answer, mut piece) = (Vec::new(), [0; 16 << 10]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() as u64 > MAX_ANSWER {
            return Err(io::Error::other(format!("the answer has more than {MAX_ANSWER} octets")));
        }
        if Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no whole answer within {TIMEOUT:?}")));
        }
    }
    let answer = String::from_utf8(answer).map_err(io::Error::other)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
    match head.split_whitespace().nth(1) {
        Some("200") => Ok(body.to_owned()),
        status => Err(io::Error::other(format!("the status is {}, not 200", status.unwrap_or("missing")))),
    }
}
