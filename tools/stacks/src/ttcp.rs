//! `ttcp` over two stacks: applications send messages through XDR, TCP and the data link of one stack to another one.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use spandrel_stream::{MapManager, Message, MessageQueue, Module, PutFailure, Stream, Synchronous, Wait};
use spandrel_sync::{AdaptiveMutex, Arc, Guarded, Monitor, Mutex};

use crate::application::{Clustered, Order, Outgoing, Receiver, XdrReader, XdrWriter};
use crate::architecture::Locks;
use crate::device::{FIRST_SENDER_PORT, PORT, RECEIVER, SENDER};
use crate::dlp::{DlpReader, DlpWriter};
use crate::link::LinkEnd;
use crate::measurement::{LIMIT, Outcome, Run, StackError};
use crate::tcp::Config;
use crate::timed::{Timed, Waits};
use crate::transport::{Connection, Shared, Tcp, TcpAddr, TcpReader, TcpWriter};
use crate::xdr::Content;

/// The parameters of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The number of applications that send, each over a connection of its own.
    pub applications: usize,
    /// The window: the octets that are outstanding in a connection at most.
    pub window: usize,
    /// The messages of each application.
    pub messages: usize,
    /// The octets of a message.
    pub octets: usize,
    /// The octets of data in a segment.
    pub segment: usize,
    /// The threads of the receiving stack.
    pub threads: usize,
    /// The locks.
    pub locks: Locks,
    /// The frames that the link holds in each direction; those beyond are lost.
    pub link: usize,
}

/// Transfers all messages, and checks them.
///
/// # Errors
/// [`StackError`]: above all, if the receiver did not get what was sent.
pub fn transfer(settings: &Settings) -> Result<Outcome, StackError> {
    match settings.locks {
        Locks::Sleeping => transfer_with::<Timed<Mutex>>(settings),
        Locks::Adaptive => transfer_with::<Timed<AdaptiveMutex>>(settings),
    }
}

fn transfer_with<L: Monitor>(settings: &Settings) -> Result<Outcome, StackError>
where
    MessageQueue<Message, L>: Send + Sync,
    Guarded<Order, L>: Send + Sync,
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    let content = Content::of_octets(settings.octets);
    let total = settings.applications * settings.messages;
    let run = Arc::new(Run::new(total, total as u64, true, false));
    let config = Config {
        max_segment: settings.segment.clamp(64, 60_000) as u16,
        receive_buffer: settings.window,
        send_buffer: settings.window,
        acknowledgment_delay: Duration::from_millis(1),
        min_timeout: Duration::from_millis(20),
        no_delay: true,
        ..Config::default()
    };
    let devices = LinkEnd::pair(settings.link).map(Arc::new);
    let tcp = |address, listening| {
        Arc::new(Tcp::new(Shared::<L>::new(), address, listening, config, content.octets(), Arc::clone(&run)))
    };
    let (sender_tcp, receiver_tcp) = (tcp(SENDER, None), tcp(RECEIVER, Some(PORT)));
    let receiver = Receiver {
        content,
        run: Arc::clone(&run),
        first: 0,
        first_port: FIRST_SENDER_PORT,
        messages: settings.messages,
        orders: (0..settings.applications).map(|_| Guarded::<Order, L>::default()).collect(),
    };
    let xdr = || Clustered {
        service: XdrReader { run: Arc::clone(&run) },
        has_thread: false,
        element: 0,
        run: Arc::clone(&run),
    };
    let dlp = |device: &Arc<LinkEnd>, threads| {
        let reader = DlpReader { device: Arc::clone(device), threads, element: 0, run: Arc::clone(&run) };
        Module::new("dlp", reader, Synchronous(DlpWriter { device: Arc::clone(device) }))
    };
    let transport = |tcp: &Arc<_>| {
        Module::new("transport", Synchronous(TcpReader(Arc::clone(tcp))), Synchronous(TcpWriter(Arc::clone(tcp))))
    };
    let [sending, receiving] = ["sender", "receiver"].map(Stream::<L>::new);
    sending.push(Module::new("xdr", xdr(), Synchronous(XdrWriter)))?;
    sending.insert("xdr", transport(&sender_tcp))?;
    sending.insert("transport", dlp(&devices[0], 1))?;
    receiving.push(Module::reader("application", Synchronous(receiver)))?;
    receiving.insert("application", Module::new("xdr", xdr(), Synchronous(XdrWriter)))?;
    receiving.insert("xdr", transport(&receiver_tcp))?;
    receiving.insert("transport", dlp(&devices[1], settings.threads))?;

    let waits = Waits::so_far();
    let begin = run.open(settings.threads + 1)?;
    let deadline = begin + LIMIT;
    let complete = std::thread::scope(|scope| {
        let applications: Vec<_> = (0..settings.applications)
            .map(|number| {
                let (sending, tcp) = (&sending, &sender_tcp);
                let local = SocketAddrV4::new(SENDER, FIRST_SENDER_PORT + number as u16);
                let address = TcpAddr { local, remote: SocketAddrV4::new(RECEIVER, PORT) };
                scope.spawn(move || -> Result<(), StackError> {
                    for number in 0..settings.messages {
                        let outgoing = Outgoing { elements: content.message(number), address };
                        let mut message = Message::new(spandrel_stream::MessageKind::Data).with_control(outgoing);
                        loop {
                            let before = tcp.progress();
                            match sending.put(message, Wait::Forever) {
                                Ok(()) => break,
                                Err(error) if error.reason == PutFailure::Refused && Instant::now() < deadline => {
                                    message = error.message;
                                    tcp.wait_for_progress(before);
                                }
                                Err(error) => return Err(StackError::Incorrect(error.to_string())),
                            }
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for application in applications {
            application.join().map_err(|_| StackError::Incorrect("an application has panicked".to_owned()))??;
        }
        run.until_complete()
    });
    let waits = Waits::so_far().since(waits);
    devices.iter().for_each(|device| device.stop());
    run.until_ended(settings.threads + 1)?;
    sending.close(LIMIT)?;
    receiving.close(LIMIT)?;
    let outcome = run.outcome(complete? - begin, content.octets())?;
    if outcome.in_order != total as u64 || run.counts().iter().any(|count| *count != 1) {
        return Err(StackError::Incorrect("the messages are not those that were sent, once each".to_owned()));
    }
    let connections = sender_tcp.statistics();
    Ok(Outcome { waits, connections, ..outcome })
}
