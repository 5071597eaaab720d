//! The receiver: serves jobs over control connections, on the same machine or (`spandrel ttcp --receive`) on
//! another one.

use std::io::{self, BufReader};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::{FromReceiver, PROTOCOL, ToReceiver, cpu_seconds, read_line, write_line};
use crate::LabError;
use crate::mechanism::{Job, Receiver};

/// Listens for control connections.
#[derive(Debug)]
pub struct ControlServer {
    listener: TcpListener,
    addr: SocketAddr,
}

impl ControlServer {
    /// Listens at `addr`, written as `HOST:PORT`; port 0 lets the system choose.
    ///
    /// # Errors
    /// If the address does not resolve or cannot be listened at.
    pub fn open(addr: &str) -> Result<Self, LabError> {
        let open = || {
            let listener = TcpListener::bind(addr)?;
            let addr = listener.local_addr()?;
            Ok(Self { listener, addr })
        };
        open().map_err(LabError::io(format!("listen at {addr}")))
    }

    /// The address at which it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves for ever, a thread for each connection. Failures are reported to the peer and to `log`, and the
    /// next connection is served.
    ///
    /// # Errors
    /// If no more connections can be accepted.
    pub fn run(&self, log: fn(&str)) -> Result<(), LabError> {
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    let session = move || {
                        if let Err(error) = serve_session(&stream, log) {
                            log(&format!("session with {peer} ended: {error}"));
                        }
                    };
                    thread::Builder::new()
                        .name("session".to_owned())
                        .spawn(session)
                        .map_err(LabError::io("start a session's thread"))?;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(LabError::io("accept control connections")(error)),
            }
        }
    }
}

fn serve_session(stream: &TcpStream, log: fn(&str)) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Data connections use the address at which the transmitter has connected.
    let host = stream.local_addr()?.ip();
    let mut input = BufReader::new(stream);
    let mut output = stream;
    write_line(&mut output, &FromReceiver::Hello { protocol: PROTOCOL })?;
    while let Some(message) = read_line::<ToReceiver>(&mut input)? {
        let ToReceiver::Open(job) = message else {
            write_line(&mut output, &FromReceiver::Failed("no job is open".to_owned()))?;
            continue;
        };
        let before = cpu_seconds();
        let receiver = match listen(host, &job) {
            Ok(receiver) => receiver,
            Err(error) => {
                log(&error.chain());
                write_line(&mut output, &FromReceiver::Failed(error.chain()))?;
                continue;
            }
        };
        write_line(&mut output, &FromReceiver::Opened { endpoint: receiver.endpoint() })?;
        let Some(ToReceiver::Close) = read_line::<ToReceiver>(&mut input)? else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a job was not closed"));
        };
        let answer = match receiver.finish() {
            Ok(received) => FromReceiver::Closed { received, cpu_seconds: cpu_seconds() - before },
            Err(error) => {
                log(&error.chain());
                FromReceiver::Failed(error.chain())
            }
        };
        write_line(&mut output, &answer)?;
    }
    Ok(())
}

fn listen(host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError> {
    job.mechanism.mechanism()?.listen(host, job)
}
