//! A stream of a `svc.conf` file: lines enter it by datagrams at its lowest module, and leave it for a file at its highest.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::UdpSocket;
use std::time::Duration;

use spandrel::net::reactor::Reactor;
use spandrel_configurator::{Catalogue, Configurator};
use spandrel_stream::{
    Context, Message, Module, OpenContext, PassThrough, PutError, Service, ServiceContext, StreamDirectives,
    Synchronous, Task, TaskError, module_factory,
};

// ANCHOR: entry
/// Brings datagrams into the stream, in a thread of its own.
struct Datagrams(UdpSocket);

impl Task for Datagrams {
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        // The thread looks for the end of the stream so often.
        self.0.set_read_timeout(Some(Duration::from_millis(100))).map_err(|error| TaskError(error.to_string()))?;
        context.activate(1)
    }

    fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
        context.put_next(message)
    }

    fn svc(&self, context: &mut ServiceContext<'_>) {
        let mut octets = [0; 1_500];
        while context.is_running() {
            match self.0.recv(&mut octets) {
                // A message that a module above refuses is lost, as a datagram is.
                Ok(length) => _ = context.put_next(Message::data(octets[..length].into())),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => eprintln!("cannot receive: {error}"),
            }
        }
    }
}
// ANCHOR_END: entry

/// Makes the letters of a message upper-case.
struct Upper;

impl Service for Upper {
    fn process(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
        if let Some(block) = message.block_mut() {
            *block = block.to_ascii_uppercase()[..].into();
        }
        context.put_next(message)
    }
}

// ANCHOR: exit
/// Takes messages out of the stream: appends them to a file, and passes none on.
struct Append(File);

impl Service for Append {
    fn process(&self, _: &Context<'_>, message: Message) -> Result<(), PutError> {
        let Some(block) = message.block() else { return Ok(()) };
        match (&self.0).write_all(&[&block[..], b"\n"].concat()) {
            Ok(()) => Ok(()),
            Err(_) => Err(PutError::refused(message)),
        }
    }
}
// ANCHOR_END: exit

// ANCHOR: catalogue
/// The modules that `svc.conf` may name. Each gets the arguments of its directive.
fn catalogue() -> Catalogue {
    let datagrams = module_factory(|context, arguments| {
        let socket = UdpSocket::bind(arguments.first().ok_or("expected ADDRESS:PORT")?)?;
        println!("receiving at {}", socket.local_addr()?);
        Ok(Module::new(context.name(), Datagrams(socket), PassThrough))
    });
    let append = module_factory(|context, arguments| {
        let file = OpenOptions::new().create(true).append(true).open(arguments.first().ok_or("expected FILE")?)?;
        Ok(Module::reader(context.name(), Synchronous(Append(file))))
    });
    Catalogue::new()
        .module("Datagrams", datagrams)
        .module("Upper", module_factory(|context, _| Ok(Module::reader(context.name(), Synchronous(Upper)))))
        .module("Append", append)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: configured-stream FILE")?;
    let reactor = Reactor::new()?;
    let configurator = Configurator::new(reactor.registry(), catalogue()).streams(StreamDirectives);
    configurator.process_text(&fs::read_to_string(file)?)?;
    reactor.run()?;
    Ok(())
}
// ANCHOR_END: catalogue
