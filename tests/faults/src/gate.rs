//! A gate at which servants wait within their upcalls, so that a fault can be injected during one.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

/// An action to run while a servant waits in a request with one of these numbers.
struct Event {
    numbers: Range<u64>,
    action: Box<dyn FnOnce() + Send>,
}

/// The gate of all servers of a test bed.
#[derive(Clone)]
pub struct Gate {
    addr: SocketAddr,
    next: Arc<Mutex<Option<Event>>>,
}

impl Gate {
    pub fn open() -> io::Result<Self> {
        Self::open_at(Ipv4Addr::LOCALHOST.into())
    }

    pub fn open_at(host: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((host, 0))?;
        let gate = Self { addr: listener.local_addr()?, next: Arc::default() };
        let acceptor = gate.clone();
        thread::Builder::new().name("gate".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                acceptor.admit(stream);
            }
        })?;
        Ok(gate)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Runs the action once, when a servant arrives at the gate with one of these numbers. Servants of
    /// earlier requests may arrive late.
    pub fn on_next_arrival(&self, numbers: Range<u64>, event: impl FnOnce() + Send + 'static) {
        *self.next.lock().expect("no thread panics with the lock held") =
            Some(Event { numbers, action: Box::new(event) });
    }

    /// Removes the pending action.
    pub fn clear(&self) {
        *self.next.lock().expect("no thread panics with the lock held") = None;
    }

    fn admit(&self, mut servant: TcpStream) {
        let mut number = [0; 8];
        // The server was killed before the servant sent its number.
        if servant.read_exact(&mut number).is_err() {
            return;
        }
        let mut next = self.next.lock().expect("no thread panics with the lock held");
        let event = next.take_if(|event| event.numbers.contains(&u64::from_le_bytes(number)));
        drop(next);
        if let Some(event) = event {
            (event.action)();
        }
    }
}
