//! What stands between a client and its server, and can do to their connection what networks and machines do.
//!
//! It hands octets on as they come. When it is armed, it counts those of one direction from then on, over all connections, and does
//! its [`Deed`] when so many have passed and another has come, or at once if none are to pass any more.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use crate::LONG;

/// Which way octets go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Reply,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deed {
    /// Both sides are told that it was reset.
    Reset,
    /// Both sides read the end of the stream.
    End,
    /// Nothing goes this way any more, and its reader reads the end of the stream; the other way goes on.
    Half,
    /// Nothing goes either way any more, and nobody is told.
    Silence,
    /// Nothing goes this way for a while.
    Delay,
    /// The server is killed.
    Kill,
}

/// How long [`Deed::Delay`] takes.
const DELAY: Duration = Duration::from_millis(15);

/// What has come to pass.
#[derive(Clone, Copy, Debug)]
pub struct Fired {
    pub direction: Direction,
    /// The first message that way since it was armed had passed whole; none where the relay cannot read it.
    pub whole: Option<bool>,
}

struct Armed {
    direction: Direction,
    after: usize,
    deed: Deed,
    passed: usize,
    /// The beginning of the first message since then, which says how long it is.
    header: Vec<u8>,
}

/// Kills the server, and has another in its place: where that listens; none if there is none.
type Kill = Box<dyn Fn() -> Option<SocketAddr> + Send + Sync>;

struct State {
    /// None while there is no server; who connects then waits for its successor.
    upstream: Option<SocketAddr>,
    armed: Option<Armed>,
    fired: Option<Fired>,
    wires: Vec<Weak<Wire>>,
    /// Counts scripts; silence lasts as long as one.
    scene: u64,
    /// Where the relay itself connects from, to learn that whoever connected before was accepted.
    last: Option<SocketAddr>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    kill: Kill,
    /// It understands what it hands on.
    reads: bool,
}

/// One for all scripts of a stage.
#[derive(Clone)]
pub struct Relay {
    shared: Arc<Shared>,
    port: u16,
}

/// One connection, by its two halves.
struct Wire {
    client: TcpStream,
    server: TcpStream,
    /// Nothing is handed on any more.
    is_cut: AtomicBool,
    is_silent: AtomicBool,
}

impl Wire {
    fn cut(&self, deed: Deed) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in [&self.client, &self.server] {
            // They fail for those that the peer has ended already.
            if deed == Deed::End {
                _ = stream.shutdown(Shutdown::Both);
            } else {
                // It is reset when the last who reads has let go of it, which this wakes.
                _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
                _ = stream.shutdown(Shutdown::Read);
            }
        }
    }
}

/// What a relay does with octets that have come.
struct Verdict {
    pass: usize,
    deed: Option<Deed>,
}

impl Armed {
    /// The next octets of this direction.
    fn judge(&mut self, octets: &[u8]) -> Verdict {
        let pass = octets.len().min(self.after - self.passed);
        let missing = 12_usize.saturating_sub(self.header.len());
        self.header.extend(octets.iter().take(missing));
        self.passed += pass;
        let is_over = pass < octets.len() || (self.passed == self.after && self.after > 0);
        Verdict { pass, deed: is_over.then_some(self.deed) }
    }

    /// The first message has passed.
    fn is_whole(&self) -> bool {
        let Some(&[_, _, _, _, _, _, flags, _, ref size @ ..]) = self.header.first_chunk::<12>() else { return false };
        let size = if flags & 1 == 1 { u32::from_le_bytes(*size) } else { u32::from_be_bytes(*size) };
        self.passed >= 12 + size as usize
    }
}

impl Relay {
    /// One before this server, of whose octets it `reads` the messages.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn start(upstream: SocketAddr, reads: bool, kill: Kill) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let state =
            State { upstream: Some(upstream), armed: None, fired: None, wires: Vec::new(), scene: 0, last: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), kill, reads });
        let relay = Self { shared, port: listener.local_addr()?.port() };
        let acceptor = relay.clone();
        thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for client in listener.incoming().flatten() {
                if acceptor.is_last(&client) {
                    continue;
                }
                // A server that is not there: the client reads the end of what it took for a connection.
                _ = acceptor.connect(client);
            }
        })?;
        Ok(relay)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nobody panics with it")
    }

    /// Does this after so many more octets.
    pub fn arm(&self, direction: Direction, after: usize, deed: Deed) {
        let mut state = self.state();
        state.fired = None;
        state.armed = Some(Armed { direction, after, deed, passed: 0, header: Vec::new() });
    }

    /// What is played: a number that no other scene has.
    pub fn scene(&self) -> u64 {
        self.state().scene
    }

    /// Does this to all connections, at once, unless that scene is over.
    pub fn fire(&self, scene: u64, direction: Direction, deed: Deed) {
        let mut state = self.state();
        if state.scene != scene {
            return;
        }
        state.armed = None;
        state.fired = Some(Fired { direction, whole: Some(true) });
        let wires: Vec<_> = state.wires.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        match deed {
            Deed::Kill => self.kill(),
            Deed::Silence => wires.iter().for_each(|wire| wire.is_silent.store(true, Ordering::SeqCst)),
            Deed::Half => wires.iter().for_each(|wire| _ = wire.server.shutdown(Shutdown::Write)),
            Deed::Delay => self.delay(),
            Deed::Reset | Deed::End => wires.iter().for_each(|wire| wire.cut(deed)),
        }
    }

    /// Ends the scene: what has happened, and nothing is cut any more. All connections are ended, so that nothing which still is
    /// on its way counts in the next.
    ///
    /// # Errors
    /// If those who connected were not accepted.
    pub fn calm(&self) -> io::Result<Option<Fired>> {
        self.accept_all()?;
        let mut state = self.state();
        state.armed = None;
        state.scene += 1;
        self.shared.changed.notify_all();
        let fired = state.fired.take();
        for wire in state.wires.drain(..).filter_map(|wire| wire.upgrade()) {
            wire.cut(Deed::End);
        }
        Ok(fired)
    }

    /// Waits until all are accepted that have connected by now: connections are accepted in their order.
    fn accept_all(&self) -> io::Result<()> {
        let marker = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        marker.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        self.state().last = marker.local_addr()?.as_socket();
        marker.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)).into())?;
        let waiting = self.shared.changed.wait_timeout_while(self.state(), LONG, |state| state.last.is_some());
        let (state, _) = waiting.expect("nobody panics with it");
        if state.last.is_some() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    fn is_last(&self, client: &TcpStream) -> bool {
        let mut state = self.state();
        let is_last = state.last.is_some() && state.last == client.peer_addr().ok();
        if is_last {
            state.last = None;
            self.shared.changed.notify_all();
        }
        is_last
    }

    fn connect(&self, client: TcpStream) -> io::Result<()> {
        let waiting = self.shared.changed.wait_timeout_while(self.state(), LONG, |state| state.upstream.is_none());
        let upstream = waiting.expect("nobody panics with it").0.upstream.ok_or(io::ErrorKind::ConnectionRefused)?;
        let server = TcpStream::connect_timeout(&upstream, LONG)?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(LONG))?;
        }
        let wire = Wire { client, server, is_cut: AtomicBool::new(false), is_silent: AtomicBool::new(false) };
        let wire = Arc::new(wire);
        let mut state = self.state();
        state.wires.retain(|wire| wire.strong_count() > 0);
        state.wires.push(Arc::downgrade(&wire));
        drop(state);
        for direction in [Direction::Request, Direction::Reply] {
            let (relay, wire) = (self.clone(), Arc::clone(&wire));
            thread::Builder::new().name(format!("{direction:?}")).spawn(move || relay.pump(direction, &wire))?;
        }
        Ok(())
    }

    fn pump(&self, direction: Direction, wire: &Wire) {
        let (mut from, mut to) = match direction {
            Direction::Request => (&wire.client, &wire.server),
            Direction::Reply => (&wire.server, &wire.client),
        };
        let mut buffer = [0; 16 << 10];
        loop {
            let read = from.read(&mut buffer);
            if wire.is_cut.load(Ordering::SeqCst) {
                return;
            }
            if wire.is_silent.load(Ordering::SeqCst) {
                self.keep_still(LONG);
                return;
            }
            let octets = match read {
                Ok(0) => {
                    _ = to.shutdown(Shutdown::Write);
                    return;
                }
                Err(_) => return wire.cut(Deed::Reset),
                Ok(count) => &buffer[..count],
            };
            let verdict = self.judge(direction, wire, octets);
            if to.write_all(&octets[..verdict.pass]).is_err() {
                return wire.cut(Deed::Reset);
            }
            let Some(deed) = verdict.deed else { continue };
            match deed {
                Deed::Reset | Deed::End => return wire.cut(deed),
                Deed::Half => {
                    _ = to.shutdown(Shutdown::Write);
                    // What comes still is nobody's.
                    _ = io::copy(&mut from, &mut io::sink());
                    return;
                }
                Deed::Silence => {
                    wire.is_silent.store(true, Ordering::SeqCst);
                    return self.keep_still(LONG);
                }
                Deed::Delay => self.delay(),
                Deed::Kill => {
                    self.kill();
                    return wire.cut(Deed::End);
                }
            }
            if to.write_all(&octets[verdict.pass..]).is_err() {
                return wire.cut(Deed::Reset);
            }
        }
    }

    fn judge(&self, direction: Direction, wire: &Wire, octets: &[u8]) -> Verdict {
        let mut state = self.state();
        let all = Verdict { pass: octets.len(), deed: None };
        // Cut since they were read: they are of a scene that is over.
        if wire.is_cut.load(Ordering::SeqCst) {
            return all;
        }
        let Some(armed) = state.armed.as_mut().filter(|armed| armed.direction == direction) else { return all };
        let verdict = armed.judge(octets);
        if verdict.deed.is_some() {
            let whole = self.shared.reads.then(|| armed.is_whole());
            state.fired = Some(Fired { direction, whole });
            state.armed = None;
        }
        verdict
    }

    fn kill(&self) {
        self.state().upstream = None;
        let successor = (self.shared.kill)();
        self.state().upstream = successor;
        self.shared.changed.notify_all();
    }

    fn delay(&self) {
        self.keep_still(DELAY);
    }

    /// Until the scene ends, at most so long.
    fn keep_still(&self, limit: Duration) {
        let state = self.state();
        let scene = state.scene;
        drop(self.shared.changed.wait_timeout_while(state, limit, |state| state.scene == scene));
    }
}
