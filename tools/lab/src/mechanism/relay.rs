//! A relay between a client and a server that counts the octets in each direction.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::LabError;

/// A relay to one server. It serves one connection and ends with it.
#[derive(Debug)]
pub(super) struct Relay {
    addr: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    to_server: AtomicU64,
    to_client: AtomicU64,
}

impl Relay {
    /// Connects to the server and waits, in the background, for the client.
    pub(super) fn start(host: &str, port: u16) -> Result<Self, LabError> {
        let open = || {
            let server = TcpStream::connect((host, port))?;
            let listener = TcpListener::bind((server.local_addr()?.ip(), 0))?;
            let addr = listener.local_addr()?;
            let counts = Arc::<Counts>::default();
            let shared = Arc::clone(&counts);
            thread::Builder::new().name("relay".to_owned()).spawn(move || relay(&listener, &server, &shared))?;
            Ok(Self { addr, counts })
        };
        open().map_err(LabError::io(format!("relay to {host}:{port}")))
    }

    /// The address for clients.
    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Octets forwarded: to the server, to the client. Octets that one side has received have been counted.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.counts.to_server.load(Ordering::Acquire), self.counts.to_client.load(Ordering::Acquire))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // If no client has connected, this connection ends the thread; otherwise the listener is closed.
        _ = TcpStream::connect(self.addr);
    }
}

fn relay(listener: &TcpListener, server: &TcpStream, counts: &Counts) -> io::Result<()> {
    let (client, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| pass(&client, server, &counts.to_server));
        pass(server, &client, &counts.to_client);
    });
    Ok(())
}

/// Forwards octets until one side has closed, then closes the other.
fn pass(mut from: &TcpStream, mut to: &TcpStream, count: &AtomicU64) {
    let mut buffer = [0; 16 << 10];
    while let Ok(received @ 1..) = from.read(&mut buffer) {
        count.fetch_add(received as u64, Ordering::AcqRel);
        if to.write_all(&buffer[..received]).is_err() {
            break;
        }
    }
    _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_counted_in_each_direction() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::start("127.0.0.1", server.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect(relay.addr()).unwrap();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"request").unwrap();
        let mut buffer = [0; 7];
        served.read_exact(&mut buffer).unwrap();
        served.write_all(b"answer").unwrap();
        client.read_exact(&mut buffer[..6]).unwrap();
        assert_eq!(relay.counted(), (7, 6));
    }
}
