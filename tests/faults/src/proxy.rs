//! A proxy between a client and its server that injects the faults of networks and machines.
//!
//! It forwards octets as they arrive. When armed, it counts the octets of one direction over all connections,
//! and injects its [`Fault`] when the given number have passed.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use crate::TIMEOUT;

/// The direction of octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Reply,
}

/// A fault of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// Both sides receive a reset.
    Reset,
    /// Both sides read the end of the stream.
    EndOfStream,
    /// The reader in this direction reads the end of the stream; the other direction continues.
    HalfClose,
    /// No octets pass in either direction, and neither side receives an error.
    Silence,
    /// The proxy forwards nothing in this direction for a while.
    Delay,
    /// The server is killed.
    Kill,
}

/// The duration of [`Fault::Delay`].
const DELAY: Duration = Duration::from_millis(15);

/// An injected fault.
#[derive(Clone, Copy, Debug)]
pub struct Injected {
    pub direction: Direction,
    /// Whether the first message in this direction after arming had passed completely; `None` if the proxy
    /// cannot parse it.
    pub message_complete: Option<bool>,
}

struct Armed {
    direction: Direction,
    after: usize,
    fault: Fault,
    passed: usize,
    /// The header of the first message after arming, with its size.
    header: Vec<u8>,
}

/// Kills the server and starts its successor; returns the successor's address, or `None` if it did not start.
type Kill = Box<dyn Fn() -> Option<SocketAddr> + Send + Sync>;

struct State {
    /// `None` while there is no server; connections then wait for its successor.
    upstream: Option<SocketAddr>,
    armed: Option<Armed>,
    injected: Option<Injected>,
    links: Vec<Weak<Link>>,
    /// The number of the current scenario; a silence lasts until its end.
    scenario: u64,
    /// The address of the proxy's own marker connection; when it is accepted, all earlier connections are, too.
    marker: Option<SocketAddr>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    kill: Kill,
    /// Whether the proxy parses the messages that it forwards.
    parses: bool,
}

/// The proxy of all scenarios of a test bed.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

/// One connection: the sockets to both sides.
struct Link {
    client: TcpStream,
    server: TcpStream,
    /// Forwarding has ended.
    is_cut: AtomicBool,
    is_silent: AtomicBool,
}

impl Link {
    fn cut(&self, fault: Fault) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in [&self.client, &self.server] {
            // These fail if the peer has closed the connection already.
            if fault == Fault::EndOfStream {
                _ = stream.shutdown(Shutdown::Both);
            } else {
                // The reset is sent when the last reader drops the socket; the shutdown wakes the readers.
                _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
                _ = stream.shutdown(Shutdown::Read);
            }
        }
    }
}

/// The handling of received octets.
struct Forwarding {
    pass: usize,
    fault: Option<Fault>,
}

impl Armed {
    /// Counts received octets of this direction.
    fn count(&mut self, octets: &[u8]) -> Forwarding {
        let pass = octets.len().min(self.after - self.passed);
        let missing = 12_usize.saturating_sub(self.header.len());
        self.header.extend(octets.iter().take(missing));
        self.passed += pass;
        let is_over = pass < octets.len() || (self.passed == self.after && self.after > 0);
        Forwarding { pass, fault: is_over.then_some(self.fault) }
    }

    /// True if the first message has passed completely.
    fn is_message_complete(&self) -> bool {
        let Some(&[_, _, _, _, _, _, flags, _, ref size @ ..]) = self.header.first_chunk::<12>() else { return false };
        let size = if flags & 1 == 1 { u32::from_le_bytes(*size) } else { u32::from_be_bytes(*size) };
        self.passed >= 12 + size as usize
    }
}

impl Proxy {
    /// Starts a proxy for this server, which parses messages if `parses` is true.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn start(upstream: SocketAddr, parses: bool, kill: Kill) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let state = State {
            upstream: Some(upstream),
            armed: None,
            injected: None,
            links: Vec::new(),
            scenario: 0,
            marker: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), kill, parses });
        let proxy = Self { shared, port: listener.local_addr()?.port() };
        let acceptor = proxy.clone();
        thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            for client in listener.incoming().flatten() {
                if acceptor.is_marker(&client) {
                    continue;
                }
                // If there is no server, the client reads the end of the stream.
                _ = acceptor.connect(client);
            }
        })?;
        Ok(proxy)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("no thread panics with the lock held")
    }

    /// Arms the proxy: it injects the fault after this number of octets.
    pub fn arm(&self, direction: Direction, after: usize, fault: Fault) {
        let mut state = self.state();
        state.injected = None;
        state.armed = Some(Armed { direction, after, fault, passed: 0, header: Vec::new() });
    }

    /// The number of the current scenario.
    pub fn scenario(&self) -> u64 {
        self.state().scenario
    }

    /// Injects the fault into all connections at once, unless that scenario has ended.
    pub fn inject(&self, scenario: u64, direction: Direction, fault: Fault) {
        let mut state = self.state();
        if state.scenario != scenario {
            return;
        }
        state.armed = None;
        state.injected = Some(Injected { direction, message_complete: Some(true) });
        let links: Vec<_> = state.links.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        match fault {
            Fault::Kill => self.kill(),
            Fault::Silence => links.iter().for_each(|link| link.is_silent.store(true, Ordering::SeqCst)),
            Fault::HalfClose => links.iter().for_each(|link| _ = link.server.shutdown(Shutdown::Write)),
            Fault::Delay => self.delay(),
            Fault::Reset | Fault::EndOfStream => links.iter().for_each(|link| link.cut(fault)),
        }
    }

    /// Ends the scenario: disarms the proxy and returns the injected fault. Closes all connections, so that
    /// octets in flight do not count in the next scenario.
    ///
    /// # Errors
    /// If pending connections were not accepted in time.
    pub fn end_scenario(&self) -> io::Result<Option<Injected>> {
        self.accept_all()?;
        let mut state = self.state();
        state.armed = None;
        state.scenario += 1;
        self.shared.changed.notify_all();
        let injected = state.injected.take();
        for link in state.links.drain(..).filter_map(|link| link.upgrade()) {
            link.cut(Fault::EndOfStream);
        }
        Ok(injected)
    }

    /// Waits until all pending connections are accepted, by a marker connection: they are accepted in order.
    fn accept_all(&self) -> io::Result<()> {
        let marker = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        marker.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        self.state().marker = marker.local_addr()?.as_socket();
        marker.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)).into())?;
        let waiting = self.shared.changed.wait_timeout_while(self.state(), TIMEOUT, |state| state.marker.is_some());
        let (state, _) = waiting.expect("no thread panics with the lock held");
        if state.marker.is_some() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    fn is_marker(&self, client: &TcpStream) -> bool {
        let mut state = self.state();
        let is_marker = state.marker.is_some() && state.marker == client.peer_addr().ok();
        if is_marker {
            state.marker = None;
            self.shared.changed.notify_all();
        }
        is_marker
    }

    fn connect(&self, client: TcpStream) -> io::Result<()> {
        let waiting = self.shared.changed.wait_timeout_while(self.state(), TIMEOUT, |state| state.upstream.is_none());
        let upstream =
            waiting.expect("no thread panics with the lock held").0.upstream.ok_or(io::ErrorKind::ConnectionRefused)?;
        let server = TcpStream::connect_timeout(&upstream, TIMEOUT)?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(TIMEOUT))?;
        }
        let link = Link { client, server, is_cut: AtomicBool::new(false), is_silent: AtomicBool::new(false) };
        let link = Arc::new(link);
        let mut state = self.state();
        state.links.retain(|link| link.strong_count() > 0);
        state.links.push(Arc::downgrade(&link));
        drop(state);
        for direction in [Direction::Request, Direction::Reply] {
            let (proxy, link) = (self.clone(), Arc::clone(&link));
            thread::Builder::new().name(format!("{direction:?}")).spawn(move || proxy.forward(direction, &link))?;
        }
        Ok(())
    }

    fn forward(&self, direction: Direction, link: &Link) {
        let (from, mut to) = match direction {
            Direction::Request => (&link.client, &link.server),
            Direction::Reply => (&link.server, &link.client),
        };
        let mut buffer = [0; 16 << 10];
        loop {
            let read = spandrel_test_support::read_some(from, &mut buffer);
            if link.is_cut.load(Ordering::SeqCst) {
                return;
            }
            if link.is_silent.load(Ordering::SeqCst) {
                self.wait_for_scenario_end(TIMEOUT);
                return;
            }
            let octets = match read {
                Ok(0) => {
                    _ = to.shutdown(Shutdown::Write);
                    return;
                }
                Err(_) => return link.cut(Fault::Reset),
                Ok(count) => &buffer[..count],
            };
            let forwarding = self.count(direction, link, octets);
            if to.write_all(&octets[..forwarding.pass]).is_err() {
                return link.cut(Fault::Reset);
            }
            let Some(fault) = forwarding.fault else { continue };
            match fault {
                Fault::Reset | Fault::EndOfStream => return link.cut(fault),
                Fault::HalfClose => {
                    _ = to.shutdown(Shutdown::Write);
                    // Further octets are dropped.
                    _ = io::copy(&mut &*from, &mut io::sink());
                    return;
                }
                Fault::Silence => {
                    link.is_silent.store(true, Ordering::SeqCst);
                    return self.wait_for_scenario_end(TIMEOUT);
                }
                Fault::Delay => self.delay(),
                Fault::Kill => {
                    self.kill();
                    return link.cut(Fault::EndOfStream);
                }
            }
            if to.write_all(&octets[forwarding.pass..]).is_err() {
                return link.cut(Fault::Reset);
            }
        }
    }

    fn count(&self, direction: Direction, link: &Link, octets: &[u8]) -> Forwarding {
        let mut state = self.state();
        let all = Forwarding { pass: octets.len(), fault: None };
        // The connection was cut after the read: the octets belong to an earlier scenario.
        if link.is_cut.load(Ordering::SeqCst) {
            return all;
        }
        let Some(armed) = state.armed.as_mut().filter(|armed| armed.direction == direction) else { return all };
        let forwarding = armed.count(octets);
        if forwarding.fault.is_some() {
            let message_complete = self.shared.parses.then(|| armed.is_message_complete());
            state.injected = Some(Injected { direction, message_complete });
            state.armed = None;
        }
        forwarding
    }

    fn kill(&self) {
        self.state().upstream = None;
        let successor = (self.shared.kill)();
        self.state().upstream = successor;
        self.shared.changed.notify_all();
    }

    fn delay(&self) {
        self.wait_for_scenario_end(DELAY);
    }

    /// Waits until the scenario ends, at most `limit`.
    fn wait_for_scenario_end(&self, limit: Duration) {
        let state = self.state();
        let scenario = state.scenario;
        drop(self.shared.changed.wait_timeout_while(state, limit, |state| state.scenario == scenario));
    }
}
