//! The client of the paper's service: one connection over a plain socket (paper 004, sections 4.1 and 5.5.3).

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The greeting: `"Hello\n"` with its final NUL, as the paper's servers send it.
pub(super) const GREETING: &[u8] = b"Hello\n\0";
/// The time for each reception.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which a server that closes first would have done so.
const CLOSE_TIME: Duration = Duration::from_millis(20);

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
}

impl Client {
    /// Connects, and receives the greeting if the server sends one.
    pub(super) fn connect(address: SocketAddr, has_greeting: bool) -> Result<Self> {
        let mut client = Self::connect_silently(address)?;
        if has_greeting {
            let greeting = client.receive(GREETING.len()).context("no greeting")?;
            ensure!(greeting == GREETING, "the greeting is {:?}", String::from_utf8_lossy(&greeting));
        }
        Ok(client)
    }

    /// Connects without a reception.
    pub(super) fn connect_silently(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { stream })
    }

    pub(super) fn send(&mut self, octets: &[u8]) -> Result<()> {
        self.stream.write_all(octets).context("cannot send")
    }

    /// Sends octets that the server may refuse.
    pub(super) fn send_regardless(&mut self, octets: &[u8]) {
        _ = self.stream.write_all(octets);
    }

    fn receive(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut octets = vec![0; count];
        self.stream.read_exact(&mut octets).with_context(|| format!("no {count} octets"))?;
        Ok(octets)
    }

    /// Receives a reply of so many octets.
    pub(super) fn expect_reply(&mut self, count: usize) -> Result<()> {
        let octets = self.receive(count)?;
        ensure!(octets.iter().all(|octet| *octet == b'A'), "a reply of {count} octets has others than `A`");
        Ok(())
    }

    /// The server does not close before the client does.
    pub(super) fn expect_open(&mut self) -> Result<()> {
        self.stream.set_read_timeout(Some(CLOSE_TIME))?;
        let result = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(TIMEOUT))?;
        let error = match result {
            Ok(0) => anyhow::bail!("the server closed first"),
            Ok(_) => anyhow::bail!("the server sent more than the reply"),
            Err(error) => error,
        };
        ensure!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        Ok(())
    }

    /// Ends the client's stream; the server then closes without further octets.
    pub(super) fn close(mut self) -> Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let rest = self.stream.read(&mut [0]).context("the server does not close after the client")?;
        ensure!(rest == 0, "the server sent more than the reply");
        Ok(())
    }

    /// The server ends the connection, and sends nothing before.
    pub(super) fn expect_end(mut self) -> Result<()> {
        match self.stream.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => anyhow::bail!("the server answered"),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()), // unread octets were left
            Err(error) => Err(error).context("the server does not close"),
        }
    }
}

/// One whole exchange.
pub(super) fn exchange(address: SocketAddr, has_greeting: bool, count: usize) -> Result<()> {
    let mut client = Client::connect(address, has_greeting)?;
    client.send(format!("{count:04}").as_bytes())?;
    client.expect_reply(count)?;
    client.close()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Runs an exchange of 20 octets with a server that sends these octets, and then closes at once or after
    /// the client.
    fn against(greeting: &'static [u8], reply: &'static [u8], closes_first: bool) -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(greeting).unwrap();
                let mut request = [0; 4];
                if stream.read_exact(&mut request).is_err() {
                    return;
                }
                assert_eq!(&request, b"0020");
                stream.write_all(reply).unwrap();
                if !closes_first {
                    _ = stream.read(&mut request);
                }
            });
            let mut client = Client::connect(address, true)?;
            client.send(b"0020")?;
            client.expect_reply(20)?;
            client.expect_open()?;
            client.close()
        })
    }

    #[test]
    fn an_exchange_by_the_protocol_passes_and_others_are_named() {
        let reply = b"AAAAAAAAAAAAAAAAAAAA";
        against(GREETING, reply, false).unwrap();
        let reason = |greeting, reply, closes_first| against(greeting, reply, closes_first).unwrap_err().to_string();
        assert_eq!(reason(b"Howdy\n\0", reply, false), "the greeting is \"Howdy\\n\\0\"");
        assert_eq!(reason(GREETING, b"AAAAAAAAAAAAAAAAAAAB", false), "a reply of 20 octets has others than `A`");
        assert_eq!(reason(GREETING, b"AAAAAAAAAAAAAAAAAAAAA", false), "the server sent more than the reply");
        assert_eq!(reason(GREETING, reply, true), "the server closed first");
    }
}
