//! Both process architectures from the same protocol modules, and the runs that measure them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use spandrel_stream::{LockFree, MapManager, Module, PassThrough, QueueStrategy, Stream, Synchronous};
use spandrel_sync::{AdaptiveMutex, Arc, Guarded, Monitor, Mutex};

use crate::application::{Clustered, Order, Receiver, XdrReader};
use crate::connections::{Connection, Connections, OwnedByThread, Shared, TcpAddr};
use crate::device::{self, Device, Faults, PreparedConnections, PreparedDatagrams, PreparedSettings};
use crate::dlp::{DlpReader, DlpWriter};
use crate::measurement::{LIMIT, Outcome, Run, StackError};
use crate::tcp::Config;
use crate::timed::{Timed, Waits};
use crate::transport::{Tcp, TcpReader, TcpWriter, UdpReader};
use crate::xdr::Content;

/// A choice between values with names, for the command line.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// All values in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),+ })
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    other => Err(format!("`{other}` is none of {}", [$($text),+].join(", "))),
                }
            }
        }
    };
}

choice! {
    /// A process architecture: the mapping of threads to protocol processing.
    Architecture,
    /// Two clusters of modules, each with a thread: data link with transport, and presentation with application.
    Task = "task",
    /// A pool of threads, each of which escorts a message through all modules.
    Message = "message"
}

choice! {
    /// A protocol of the transport layer.
    Protocol,
    /// Connection-oriented, with retransmission: TCP.
    Tcp = "tcp",
    /// Connectionless, without retransmission: UDP.
    Udp = "udp"
}

choice! {
    /// A locking strategy for queues and control blocks.
    Locks,
    /// A thread that waits sleeps.
    Sleeping = "sleeping",
    /// A thread that waits spins for a while before it sleeps.
    Adaptive = "adaptive"
}

choice! {
    /// A strategy for the queues between threads. The message-based architecture has no such queues.
    Queues,
    /// A queue with a lock and two conditions, by the locking strategy.
    Locked = "locked",
    /// A queue without locks. Its waits for messages and for room are not measured.
    LockFree = "lock-free"
}

/// The architecture, locks and queues of a stack, and the data that it receives.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The parts of the stack that have threads of their own.
    pub architecture: Architecture,
    /// TCP or UDP, for all connections.
    pub protocol: Protocol,
    /// The locks of queues, maps, control blocks and devices.
    pub locks: Locks,
    /// The queues of the task-based architecture.
    pub queues: Queues,
    /// The number of threads; in the task-based architecture a multiple of two, with a stream for each two.
    pub threads: usize,
    /// The number of connections of TCP, at least one for each stream. All streams have the same number.
    pub connections: usize,
    /// The number of messages of all connections, which have the same number.
    pub messages: usize,
    /// The octets of a message.
    pub octets: usize,
    /// The octets of data in a TCP segment.
    pub segment: usize,
    /// The window of the receiver in octets.
    pub window: usize,
    /// The percentages of frames that the device loses, repeats and reorders.
    pub faults: Faults,
    /// The seed that repeats the same faults.
    pub seed: u64,
    /// Whether each processing element is pinned to a core, as far as there are enough.
    pub is_pinned: bool,
}

impl Default for Settings {
    /// The experiment of the paper: 10,000 messages of 4 KiB without faults, over two connections.
    fn default() -> Self {
        Self {
            architecture: Architecture::Message,
            protocol: Protocol::Udp,
            locks: Locks::Adaptive,
            queues: Queues::Locked,
            threads: 1,
            connections: 2,
            messages: 10_000,
            octets: 4096,
            segment: 4096,
            window: 64 << 10,
            faults: Faults::default(),
            seed: 1,
            is_pinned: true,
        }
    }
}

/// Runs a stack over a device of prepared frames.
///
/// # Errors
/// [`StackError`]: above all, if the application did not get what was sent.
pub fn run(settings: &Settings) -> Result<Outcome, StackError> {
    match (settings.locks, settings.queues) {
        (Locks::Sleeping, Queues::Locked) => run_with::<Timed<Mutex>, Timed<Mutex>>(settings),
        (Locks::Sleeping, Queues::LockFree) => run_with::<Timed<Mutex>, LockFree>(settings),
        (Locks::Adaptive, Queues::Locked) => run_with::<Timed<AdaptiveMutex>, Timed<AdaptiveMutex>>(settings),
        (Locks::Adaptive, Queues::LockFree) => run_with::<Timed<AdaptiveMutex>, LockFree>(settings),
    }
}

/// Runs a stack with the locks `L` and the queues `Q`.
fn run_with<L: Monitor, Q: QueueStrategy<Queue: Send + Sync>>(settings: &Settings) -> Result<Outcome, StackError>
where
    Guarded<Order, L>: Send + Sync,
    PreparedConnections<L>: Send + Sync,
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    let is_task = settings.architecture == Architecture::Task;
    if settings.threads == 0 || (is_task && !settings.threads.is_multiple_of(2)) {
        return Err(StackError::Settings("the task-based architecture has threads in multiples of two".to_owned()));
    }
    let streams = if is_task { settings.threads / 2 } else { 1 };
    let content = Content::of_octets(settings.octets);
    match settings.protocol {
        Protocol::Udp => {
            let messages = messages_of_each(settings.messages, streams)?;
            let seeds = settings.seed..settings.seed + streams as u64;
            let device = |seed| Arc::new(PreparedDatagrams::new(messages, content, settings.faults, seed));
            let devices: Vec<_> = seeds.map(device).collect();
            let expected = devices.iter().map(|device| device.schedule().len() as u64).sum();
            let run = Arc::new(Run::new(messages * streams, expected, false, settings.is_pinned, settings.threads));
            let transport =
                |_: usize| (Synchronous(UdpReader { port: device::PORT, run: Arc::clone(&run) }), PassThrough);
            let outcome = drive::<L, Q, _, _, _>(settings, &run, &devices, 1, transport, |_| {})?;
            check_datagrams(&devices, &run.counts(), messages)?;
            Ok(outcome)
        }
        Protocol::Tcp if is_task => run_tcp::<L, Q, _>(settings, streams, content, || OwnedByThread),
        Protocol::Tcp => run_tcp::<L, Q, _>(settings, streams, content, Shared::<L>::new),
    }
}

/// The number of messages of each of so many streams or connections.
fn messages_of_each(messages: usize, number: usize) -> Result<usize, StackError> {
    match messages / number {
        0 => Err(StackError::Settings(format!("{messages} messages are too few for {number} streams or connections"))),
        each => Ok(each),
    }
}

/// Each message came as often as the device delivered it.
fn check_datagrams(devices: &[Arc<PreparedDatagrams>], counts: &[u8], messages: usize) -> Result<(), StackError> {
    let mut delivered = vec![0u8; counts.len()];
    for (index, device) in devices.iter().enumerate() {
        device.schedule().iter().for_each(|number| delivered[index * messages + number] += 1);
    }
    if delivered != counts {
        return Err(StackError::Incorrect("the datagrams are not those that the device delivered".to_owned()));
    }
    Ok(())
}

fn run_tcp<L: Monitor, Q: QueueStrategy<Queue: Send + Sync>, C: Connections>(
    settings: &Settings,
    streams: usize,
    content: Content,
    new_connections: impl Fn() -> C,
) -> Result<Outcome, StackError>
where
    Guarded<Order, L>: Send + Sync,
    PreparedConnections<L>: Send + Sync,
{
    let connections = settings.connections.div_ceil(streams).max(1); // of each stream
    let messages = messages_of_each(settings.messages, streams * connections)?;
    let config = Config {
        max_segment: settings.segment.clamp(64, 60_000) as u16,
        receive_buffer: settings.window,
        initial_sequence: 7,
        acknowledgment_delay: Duration::from_millis(1),
        ..Config::default()
    };
    let prepared = |stream: usize| PreparedSettings {
        connections,
        messages,
        content,
        segment: settings.segment,
        first_port: first_port(stream, connections),
        receiver_sequence: config.initial_sequence,
        faults: settings.faults,
        seed: settings.seed + stream as u64,
    };
    let devices: Vec<_> =
        (0..streams).map(|stream| Arc::new(PreparedConnections::<L>::new(&prepared(stream)))).collect();
    let total = messages * streams * connections;
    let run = Arc::new(Run::new(total, total as u64, true, settings.is_pinned, settings.threads));
    let modules: Vec<_> = (0..streams)
        .map(|_| {
            let (address, port) = (device::RECEIVER, Some(device::PORT));
            Arc::new(Tcp::new(new_connections(), address, port, config, content.octets(), Arc::clone(&run)))
        })
        .collect();
    let transport = |stream: usize| {
        let module = &modules[stream];
        (Synchronous(TcpReader(Arc::clone(module))), Synchronous(TcpWriter(Arc::clone(module))))
    };
    let mut outcome =
        drive::<L, Q, _, _, _>(settings, &run, &devices, connections, transport, PreparedConnections::stop)?;
    outcome.connections = modules.iter().flat_map(|module| module.statistics()).collect();
    outcome.senders = devices.iter().flat_map(|device| device.counts()).collect();
    if outcome.in_order != total as u64 || run.counts().iter().any(|count| *count != 1) {
        return Err(StackError::Incorrect("the messages are not those that were sent, once each".to_owned()));
    }
    if outcome.senders.iter().any(|sender| sender.invalid > 0) {
        return Err(StackError::Incorrect("the receiver has sent segments that are not valid".to_owned()));
    }
    Ok(outcome)
}

/// The sender's port of the first connection of a stream.
fn first_port(stream: usize, connections: usize) -> u16 {
    device::FIRST_SENDER_PORT + (stream * connections) as u16
}

/// Builds a stream over each device of so many connections, and measures it until all messages have come. `stop` makes a
/// device end.
fn drive<L: Monitor, Q: QueueStrategy<Queue: Send + Sync>, D, R, W>(
    settings: &Settings,
    run: &Arc<Run>,
    devices: &[Arc<D>],
    connections: usize,
    transport: impl Fn(usize) -> (R, W),
    stop: impl Fn(&D),
) -> Result<Outcome, StackError>
where
    Guarded<Order, L>: Send + Sync,
    D: Device,
    R: spandrel_stream::Task<Q>,
    W: spandrel_stream::Task<Q>,
{
    let content = Content::of_octets(settings.octets);
    let messages = settings.messages / (devices.len() * connections);
    let is_task = settings.architecture == Architecture::Task;
    let mut streams = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let receiver = Receiver {
            content,
            run: Arc::clone(run),
            first: index * connections * messages,
            first_port: first_port(index, connections),
            messages,
            orders: (0..connections).map(|_| Guarded::<Order, L>::default()).collect(),
        };
        let xdr = Clustered {
            service: XdrReader { run: Arc::clone(run) },
            has_thread: is_task,
            element: index * 2 + 1,
            run: Arc::clone(run),
        };
        let (reader, writer) = transport(index);
        let threads = if is_task { 1 } else { settings.threads };
        let element = if is_task { index * 2 } else { 0 };
        let dlp = DlpReader { device: Arc::clone(device), threads, element, run: Arc::clone(run) };
        let stream = Stream::<Q>::new("stack");
        stream.push(Module::reader("application", Synchronous(receiver)))?;
        stream.insert("application", Module::reader("xdr", xdr))?;
        stream.insert("xdr", Module::new("transport", reader, writer))?;
        let dlp = Module::new("dlp", dlp, Synchronous(DlpWriter { device: Arc::clone(device) }));
        stream.insert("transport", dlp)?;
        streams.push(stream);
    }
    let waits = Waits::so_far();
    let begin = run.open()?;
    let complete = run.until_complete();
    let waits = Waits::so_far().since(waits);
    devices.iter().for_each(|device| stop(device));
    run.until_ended(if is_task { devices.len() } else { settings.threads })?;
    for stream in &streams {
        stream.close(LIMIT)?;
    }
    let outcome = run.outcome(complete? - begin, content.octets())?;
    Ok(Outcome { waits, ..outcome })
}
