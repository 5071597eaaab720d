//! A chat server for any number of clients, on one thread: `chat-server [ADDRESS]`.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use spandrel::net::ipc::inet::{Addr, Inet};
use spandrel::net::reactor::framing::{FrameHandler, Framed, Lines};
use spandrel::net::reactor::{Acceptor, CloseReason, Family, Peer, Reactor, Sender};

/// The longest line, and the octets that may wait for a member that reads slowly.
const MAX_LINE: usize = 1024;
const MAX_WAITING: usize = 1 << 20;

/// The members by name.
type Members = Arc<Mutex<HashMap<String, Sender>>>;

/// Sends a line to all members but the one of this name. A member that does not read is disconnected.
fn tell(members: &Members, except: &str, line: &str) {
    for (_, member) in members.lock().unwrap().iter().filter(|(name, _)| *name != except) {
        if member.put(line.as_bytes()).is_err() {
            member.abort();
        }
    }
}

/// A connection. Its first line is the name of the member.
struct Connection {
    members: Members,
    name: Option<String>,
}

impl<F: Family> FrameHandler<F> for Connection {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.limit_waiting(MAX_WAITING);
        peer.put(b"your name?\n")
    }

    fn handle_frame(&mut self, peer: &mut Peer<'_, F>, line: &[u8]) -> io::Result<()> {
        let line: String = String::from_utf8_lossy(line).chars().filter(|char| !char.is_control()).collect();
        if let Some(name) = &self.name {
            tell(&self.members, name, &format!("{name}: {line}\n"));
        } else if line.is_empty() || self.members.lock().unwrap().contains_key(&line) {
            peer.put(b"another name?\n")?;
        } else {
            peer.put(format!("welcome, {line}\n").as_bytes())?;
            self.members.lock().unwrap().insert(line.clone(), peer.sender()?);
            tell(&self.members, &line, &format!("{line} has joined\n"));
            self.name = Some(line);
        }
        Ok(())
    }

    fn close(&mut self, _peer: &mut Peer<'_, F>, reason: &CloseReason) {
        let Some(name) = &self.name else { return };
        self.members.lock().unwrap().remove(name);
        tell(&self.members, name, &format!("{name} has left ({reason})\n"));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addr = std::env::args().nth(1).map_or(Ok(Addr::loopback(0)), |addr| addr.parse())?;
    let members = Members::default();
    let connection = move || Connection { members: Arc::clone(&members), name: None };
    let reactor = Reactor::new()?;
    let acceptor = Acceptor::new(Inet::default(), move || Framed::new(Lines::new(MAX_LINE), connection()));
    println!("{}", acceptor.open(reactor.registry(), &addr)?.addr());
    Ok(reactor.run()?)
}
