//! Where servants wait inside of their upcalls, so that something can happen just then.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

/// What happens while a servant waits with a request that has one of these numbers.
struct Event {
    numbers: Range<u64>,
    happens: Box<dyn FnOnce() + Send>,
}

/// One for all servers of a stage.
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
        let keeper = gate.clone();
        thread::Builder::new().name("gate".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                keeper.pass(stream);
            }
        })?;
        Ok(gate)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// This happens when a servant comes to the gate with one of these, once. Others may come late.
    pub fn at_next(&self, numbers: Range<u64>, event: impl FnOnce() + Send + 'static) {
        *self.next.lock().expect("nobody panics with it") = Some(Event { numbers, happens: Box::new(event) });
    }

    /// Nothing happens.
    pub fn forget(&self) {
        *self.next.lock().expect("nobody panics with it") = None;
    }

    fn pass(&self, mut servant: TcpStream) {
        let mut number = [0; 8];
        // A servant that has not said who it is was killed before.
        if servant.read_exact(&mut number).is_err() {
            return;
        }
        let mut next = self.next.lock().expect("nobody panics with it");
        let event = next.take_if(|event| event.numbers.contains(&u64::from_le_bytes(number)));
        drop(next);
        if let Some(event) = event {
            (event.happens)();
        }
    }
}
