//! Input that is announced by signals, of each kind of endpoint. Run without the test harness, since signals
//! concern the whole process.

use std::io::{self, ErrorKind};

use spandrel_ipc::signal_driven::{InputSignal, SignalDriven, SignalOwner};
use spandrel_ipc::{Pollable, fifo, inet, spipe, unix};
use spandrel_reactor::{Backend, Context, EventHandler, Reactor, Signal};

use crate::scripted::{Log, NONE, pair, reactor, run_until};

/// Receives a message as text, without waiting.
type Receive = Box<dyn FnMut() -> io::Result<String> + Send>;

/// Takes all input at each signal, and notes it. The reactor does not wait for its endpoint.
struct Drained {
    receive: Receive,
    log: Log,
}

impl EventHandler for Drained {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }

    fn handle_signal(&mut self, _: &Context<'_>, signal: Signal) -> io::Result<()> {
        loop {
            match (self.receive)() {
                Ok(input) => self.log.note(format!("{signal} {input}")),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn input_is_announced_by_signals() {
    for backend in Backend::available() {
        let reactor = reactor(backend);
        streams(&reactor);
        acceptors_and_datagrams(&reactor);
        pipes(&reactor);
        real_time_signals(&reactor);
        urgent_data(&reactor);
    }
}

/// A handler that is told about input by this signal; its log.
fn drained(
    reactor: &Reactor,
    signal: Signal,
    receive: impl FnMut() -> io::Result<String> + Send + 'static,
) -> (Log, spandrel_reactor::HandlerId) {
    let log = Log::default();
    let handler = Drained { receive: Box::new(receive), log: log.clone() };
    let id = reactor.registry().register(handler, NONE).expect("registered");
    reactor.registry().on_signal(id, signal).expect("an ordinary signal");
    (log, id)
}

/// Waits for one input, and removes the handler.
fn expect(reactor: &Reactor, (log, id): &(Log, spandrel_reactor::HandlerId), lines: &[&str]) {
    run_until(reactor, || log.lines().len() >= lines.len());
    assert_eq!(log.take(), lines);
    reactor.registry().remove(*id);
}

/// The received octets as a text.
fn text(received: usize, buffer: &[u8]) -> String {
    String::from_utf8_lossy(&buffer[..received]).into_owned()
}

fn streams(reactor: &Reactor) {
    macro_rules! check {
        ($pair:expr) => {
            let (near, far) = $pair;
            assert!(!near.is_signal_enabled().unwrap());
            near.enable_signal().unwrap();
            assert!(near.is_signal_enabled().unwrap());
            let clone = near.try_clone().unwrap();
            let handler = drained(reactor, Signal::IO, move || {
                let mut buffer = [0; 16];
                Ok(text(near.try_recv(&mut buffer)?, &buffer))
            });
            far.send_n(b"octets").unwrap();
            expect(reactor, &handler, &["SIGIO octets"]);
            clone.disable_signal().unwrap();
            assert!(!clone.is_signal_enabled().unwrap());
        };
    }
    check!(pair());
    check!(unix::pair().unwrap());
    check!(spipe::pair().unwrap());
}

fn acceptors_and_datagrams(reactor: &Reactor) {
    let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
    acceptor.set_nonblocking(true).unwrap();
    let addr = acceptor.local_addr().unwrap();
    acceptor.enable_signal().unwrap();
    let handler = drained(reactor, Signal::IO, move || acceptor.accept().map(|_| "connection".to_owned()));
    let _client = inet::Connector::connect(&addr).unwrap();
    expect(reactor, &handler, &["SIGIO connection"]);

    let (near, far) = unix::ConnectedDgram::pair().unwrap();
    near.enable_signal().unwrap();
    let handler = drained(reactor, Signal::IO, move || {
        let mut buffer = [0; 16];
        let received = near.try_recv(&mut buffer)?;
        Ok(text(received.len(), &buffer))
    });
    far.send(b"datagram").unwrap();
    expect(reactor, &handler, &["SIGIO datagram"]);
}

fn pipes(reactor: &Reactor) {
    let (reader, writer) = fifo::pair().unwrap();
    reader.enable_signal().unwrap();
    let handler = drained(reactor, Signal::IO, move || {
        let mut buffer = [0; 16];
        Ok(text(reader.try_recv(&mut buffer)?, &buffer))
    });
    writer.send(b"line").unwrap();
    expect(reactor, &handler, &["SIGIO line"]);
}

/// Each endpoint has a signal of its own, and a disabled one sends none.
fn real_time_signals(reactor: &Reactor) {
    let signals = [3, 4].map(|offset| InputSignal::real_time(offset).unwrap());
    let pairs = [spipe::pair().unwrap(), spipe::pair().unwrap()];
    let [(first, first_far), (second, second_far)] = pairs;
    first.enable_signal_with(signals[0]).unwrap();
    first.disable_signal().unwrap();
    // The main thread runs the reactor, and its signals.
    second.enable_signal_with(signals[1].owner(SignalOwner::Thread)).unwrap();
    let handlers = [(first, signals[0]), (second, signals[1])].map(|(stream, signal)| {
        drained(reactor, Signal::new(signal.number()).unwrap(), move || {
            let mut buffer = [0; 16];
            stream.try_recv(&mut buffer).map(|received| text(received, &buffer))
        })
    });
    first_far.send_n(b"silent").unwrap();
    second_far.send_n(b"loud").unwrap();
    let name = Signal::new(signals[1].number()).unwrap();
    expect(reactor, &handlers[1], &[&format!("{name} loud")]);
    expect(reactor, &handlers[0], &[]);
    assert_eq!(InputSignal::real_time(1000).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(InputSignal::real_time(-1).unwrap_err().kind(), ErrorKind::InvalidInput);
}

fn urgent_data(reactor: &Reactor) {
    let (near, far) = pair();
    near.enable_urgent_signal().unwrap();
    let clone = near.try_clone().unwrap();
    let handler = drained(reactor, Signal::URG, move || near.recv_urgent().map(|octet| char::from(octet).to_string()));
    far.send_n(b"ordinary").unwrap();
    far.send_urgent(b'!').unwrap();
    expect(reactor, &handler, &["SIGURG !"]);
    clone.disable_urgent_signal().unwrap();
    let mut buffer = [0; 8];
    clone.recv_n(&mut buffer).unwrap();
    assert_eq!(&buffer, b"ordinary");
}
