//! Both process architectures from the same protocol modules, and the runs that measure them.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use spandrel_lab::placement;
use spandrel_stream::{MapManager, Message, MessageQueue, Module, PassThrough, Stream, StreamError, Synchronous};
use spandrel_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::{AdaptiveMutex, Arc, Condition, Guarded, Monitor, Mutex};

use crate::application::{Clustered, Order, Receiver, XdrReader};
use crate::device::{self, Device, Faults, PreparedConnection, PreparedDatagrams, PreparedSettings, SenderCounts};
use crate::dlp::{DlpReader, DlpWriter};
use crate::tcp::{Config, Statistics};
use crate::timed::{Timed, Waits};
use crate::transport::{Connection, Connections, OwnedByThread, Shared, Tcp, TcpAddr, TcpReader, TcpWriter, UdpReader};
use crate::xdr::Content;

/// The time after which a run without an end has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// A choice between values with names, for the command line.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// All values.
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
    /// A process architecture.
    Architecture,
    /// Two clusters of modules, each with a thread: data link with transport, and presentation with application.
    Task = "task",
    /// A pool of threads, each of which escorts a message through all modules.
    Message = "message"
}

choice! {
    /// A protocol of the transport layer.
    Protocol,
    /// Connection-oriented: TCP.
    Tcp = "tcp",
    /// Connectionless: UDP.
    Udp = "udp"
}

choice! {
    /// A locking strategy.
    Locks,
    /// A thread that waits sleeps.
    Sleeping = "sleeping",
    /// A thread that waits spins for a while before it sleeps.
    Adaptive = "adaptive"
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The architecture.
    pub architecture: Architecture,
    /// The protocol.
    pub protocol: Protocol,
    /// The locks of queues, maps and control blocks.
    pub locks: Locks,
    /// The number of threads; in the task-based architecture a multiple of two, with a stream for each two.
    pub threads: usize,
    /// The number of messages.
    pub messages: usize,
    /// The octets of a message.
    pub octets: usize,
    /// The octets of data in a TCP segment.
    pub segment: usize,
    /// The window of the receiver in octets.
    pub window: usize,
    /// The faults of the device.
    pub faults: Faults,
    /// The seed of the faults.
    pub seed: u64,
    /// Whether each processing element is pinned to a core, as far as there are enough.
    pub is_pinned: bool,
}

impl Default for Settings {
    /// The experiment of the paper: 10,000 messages of 4 KiB without faults.
    fn default() -> Self {
        Self {
            architecture: Architecture::Message,
            protocol: Protocol::Udp,
            locks: Locks::Adaptive,
            threads: 1,
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

/// The reason for which a run has failed.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// Parameters that do not fit.
    #[error("{0}")]
    Settings(String),
    /// A stream cannot be built or closed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The application did not get what was sent.
    #[error("{0}")]
    Incorrect(String),
}

/// The measurements of a run, after the check that all messages came as they had to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The time from the first frame to the last message.
    pub elapsed: Duration,
    /// Messages that the application got, with those that came twice.
    pub received: u64,
    /// Different messages among them.
    pub distinct: u64,
    /// Messages that the application got in order (TCP).
    pub in_order: u64,
    /// Frames that were dropped on their way up.
    pub dropped: u64,
    /// Octets of the messages that the application got.
    pub octets: u64,
    /// Times at which a thread of the stack gave up its processor, because it had to wait.
    pub voluntary: u64,
    /// Times at which the system took it away.
    pub involuntary: u64,
    /// The waits for locks and conditions.
    pub waits: Waits,
    /// The counts of the receiving connections.
    pub connections: Vec<Statistics>,
    /// The counts of their senders.
    pub senders: Vec<SenderCounts>,
}

impl Outcome {
    /// Mbit of messages per second.
    #[must_use]
    pub fn mbits(&self) -> f64 {
        self.octets as f64 * 8.0 / self.elapsed.as_secs_f64() / 1e6
    }
}

/// The common state of the threads of a run.
pub(crate) struct Run {
    /// How often each message has come.
    counts: Vec<AtomicU8>,
    received: AtomicU64,
    in_order: AtomicU64,
    dropped: AtomicU64,
    wrong: AtomicU64,
    /// The number of messages after which the run is complete; with `in_order` for TCP.
    expected: u64,
    is_ordered: bool,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    /// The cores to which the processing elements are pinned; none to leave that to the system.
    cores: Vec<usize>,
    /// The threads that wait for `is_open`.
    spinning: AtomicUsize,
    is_open: AtomicBool,
    gate: Mutex<Gate>,
    changed: Condition,
}

#[derive(Default)]
struct Gate {
    waiting: usize,
    is_ready: bool,
    complete: Option<Instant>,
    /// The threads of data links that have ended.
    ended: usize,
}

impl Run {
    pub(crate) fn new(messages: usize, expected: u64, is_ordered: bool, is_pinned: bool) -> Self {
        Self {
            counts: (0..messages).map(|_| AtomicU8::new(0)).collect(),
            received: AtomicU64::new(0),
            in_order: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            expected,
            is_ordered,
            voluntary: AtomicU64::new(0),
            involuntary: AtomicU64::new(0),
            cores: if is_pinned { placement::cores() } else { Vec::new() },
            spinning: AtomicUsize::new(0),
            is_open: AtomicBool::new(false),
            gate: Mutex::default(),
            changed: Condition::new(),
        }
    }

    /// A thread of the stack begins: it waits until all have begun. Its switches are counted from then on. The last part of
    /// the wait is active, so that all threads run when the measurement begins.
    /// `element` is the index of its processing element.
    pub(crate) fn thread_begins(&self, element: usize) -> CountedThread<'_> {
        if let Some(core) = self.cores.get(element % self.cores.len().max(1)) {
            // Without the right to choose cores, the system places the threads.
            _ = placement::pin(*core);
        }
        let mut gate = self.gate.lock();
        gate.waiting += 1;
        self.changed.notify_all();
        while !gate.is_ready {
            self.changed.wait(&mut gate);
        }
        drop(gate);
        let before = switches();
        self.spinning.fetch_add(1, Ordering::AcqRel);
        while !self.is_open.load(Ordering::Acquire) {
            spandrel_sync::thread::yield_now();
        }
        CountedThread { run: self, before }
    }

    /// Lets the threads begin, as soon as all wait; returns the time.
    pub(crate) fn open(&self, threads: usize) -> Result<Instant, StackError> {
        let deadline = Instant::now() + LIMIT;
        let mut gate = self.gate.lock();
        while gate.waiting < threads {
            if Instant::now() >= deadline {
                return Err(StackError::Incorrect(format!("{} of {threads} threads began", gate.waiting)));
            }
            self.changed.wait_for(&mut gate, Duration::from_millis(100));
        }
        gate.is_ready = true;
        drop(gate);
        self.changed.notify_all();
        while self.spinning.load(Ordering::Acquire) < threads {
            spandrel_sync::thread::yield_now();
        }
        let begin = Instant::now();
        self.is_open.store(true, Ordering::Release);
        Ok(begin)
    }

    /// A message that is not the one that was sent.
    pub(crate) fn wrong(&self) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
    }

    /// A frame was dropped.
    pub(crate) fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A message has come; so many can be given to the application in order.
    pub(crate) fn arrived(&self, number: usize, in_order: u64) {
        match self.counts.get(number) {
            Some(count) => _ = count.fetch_add(1, Ordering::Relaxed),
            None => return self.wrong(),
        }
        let received = self.received.fetch_add(1, Ordering::Relaxed) + 1;
        let done = if self.is_ordered {
            in_order > 0 && self.in_order.fetch_add(in_order, Ordering::Relaxed) + in_order == self.expected
        } else {
            received == self.expected
        };
        if done {
            self.gate.lock().complete = Some(Instant::now());
            self.changed.notify_all();
        }
    }

    /// Waits until all expected messages have come; returns the time.
    pub(crate) fn until_complete(&self) -> Result<Instant, StackError> {
        let deadline = Instant::now() + LIMIT;
        let mut gate = self.gate.lock();
        loop {
            if let Some(at) = gate.complete {
                return Ok(at);
            }
            if Instant::now() >= deadline {
                let (received, dropped) = (self.received.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed));
                return Err(StackError::Incorrect(format!(
                    "{received} of {} messages came, {} in order, {dropped} dropped, {} wrong",
                    self.expected,
                    self.in_order.load(Ordering::Relaxed),
                    self.wrong.load(Ordering::Relaxed)
                )));
            }
            self.changed.wait_for(&mut gate, Duration::from_millis(100));
        }
    }

    /// A thread of a data link has ended, and told the modules above.
    pub(crate) fn device_thread_ended(&self) {
        self.gate.lock().ended += 1;
        self.changed.notify_all();
    }

    /// Waits until so many threads of data links have ended.
    pub(crate) fn until_ended(&self, threads: usize) -> Result<(), StackError> {
        let deadline = Instant::now() + LIMIT;
        let mut gate = self.gate.lock();
        while gate.ended < threads {
            if Instant::now() >= deadline {
                return Err(StackError::Incorrect(format!("{} of {threads} threads ended", gate.ended)));
            }
            self.changed.wait_for(&mut gate, Duration::from_millis(100));
        }
        Ok(())
    }

    /// The measurements, if all messages are those that were sent.
    pub(crate) fn outcome(&self, elapsed: Duration, octets: usize) -> Result<Outcome, StackError> {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        if get(&self.wrong) > 0 {
            return Err(StackError::Incorrect(format!("{} messages are not those that were sent", get(&self.wrong))));
        }
        let distinct = self.counts.iter().filter(|count| count.load(Ordering::Relaxed) > 0).count() as u64;
        Ok(Outcome {
            elapsed,
            received: get(&self.received),
            distinct,
            in_order: get(&self.in_order),
            dropped: get(&self.dropped),
            octets: get(&self.received) * octets as u64,
            voluntary: get(&self.voluntary),
            involuntary: get(&self.involuntary),
            ..Outcome::default()
        })
    }

    /// How often each message has come.
    pub(crate) fn counts(&self) -> Vec<u8> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

/// A thread of the stack whose context switches are counted.
pub(crate) struct CountedThread<'r> {
    run: &'r Run,
    before: [u64; 2],
}

impl CountedThread<'_> {
    pub(crate) fn end(self) {
        let [voluntary, involuntary] = switches();
        self.run.voluntary.fetch_add(voluntary - self.before[0], Ordering::Relaxed);
        self.run.involuntary.fetch_add(involuntary - self.before[1], Ordering::Relaxed);
    }
}

/// The voluntary and involuntary context switches of the calling thread since its start; zero where the system does not
/// report them.
#[must_use]
pub fn switches() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    })
}

/// Runs a stack over a device of prepared frames.
///
/// # Errors
/// [`StackError`]: above all, if the application did not get what was sent.
pub fn run(settings: &Settings) -> Result<Outcome, StackError> {
    match settings.locks {
        Locks::Sleeping => run_with::<Timed<Mutex>>(settings),
        Locks::Adaptive => run_with::<Timed<AdaptiveMutex>>(settings),
    }
}

fn run_with<L: Monitor>(settings: &Settings) -> Result<Outcome, StackError>
where
    MessageQueue<Message, L>: Send + Sync,
    Guarded<Order, L>: Send + Sync,
    PreparedConnection<L>: Send + Sync,
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    let is_task = settings.architecture == Architecture::Task;
    if settings.threads == 0 || (is_task && !settings.threads.is_multiple_of(2)) {
        return Err(StackError::Settings("the task-based architecture has threads in multiples of two".to_owned()));
    }
    let streams = if is_task { settings.threads / 2 } else { 1 };
    let messages = settings.messages / streams;
    let content = Content::of_octets(settings.octets);
    match settings.protocol {
        Protocol::Udp => {
            let seeds = settings.seed..settings.seed + streams as u64;
            let device = |seed| Arc::new(PreparedDatagrams::new(messages, content, settings.faults, seed));
            let devices: Vec<_> = seeds.map(device).collect();
            let expected = devices.iter().map(|device| device.schedule().len() as u64).sum();
            let run = Arc::new(Run::new(messages * streams, expected, false, settings.is_pinned));
            let transport =
                |_: usize| (Synchronous(UdpReader { port: device::PORT, run: Arc::clone(&run) }), PassThrough);
            let outcome = drive::<L, _, _, _>(settings, &run, &devices, transport, |_| {})?;
            check_datagrams(&devices, &run.counts(), messages)?;
            Ok(outcome)
        }
        Protocol::Tcp if is_task => run_tcp::<L, _>(settings, streams, messages, content, || OwnedByThread),
        Protocol::Tcp => run_tcp::<L, _>(settings, streams, messages, content, Shared::<L>::new),
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

fn run_tcp<L: Monitor, C: Connections>(
    settings: &Settings,
    streams: usize,
    messages: usize,
    content: Content,
    connections: impl Fn() -> C,
) -> Result<Outcome, StackError>
where
    MessageQueue<Message, L>: Send + Sync,
    Guarded<Order, L>: Send + Sync,
    PreparedConnection<L>: Send + Sync,
{
    let config = Config {
        max_segment: settings.segment.clamp(64, 60_000) as u16,
        receive_buffer: settings.window,
        initial_sequence: 7,
        acknowledgment_delay: Duration::from_millis(1),
        ..Config::default()
    };
    let prepared = |stream: usize| PreparedSettings {
        messages,
        content,
        segment: settings.segment,
        port: device::FIRST_SENDER_PORT + stream as u16,
        receiver_sequence: config.initial_sequence,
        faults: settings.faults,
        seed: settings.seed + stream as u64,
    };
    let devices: Vec<_> =
        (0..streams).map(|stream| Arc::new(PreparedConnection::<L>::new(&prepared(stream)))).collect();
    let total = messages * streams;
    let run = Arc::new(Run::new(total, total as u64, true, settings.is_pinned));
    let modules: Vec<_> = (0..streams)
        .map(|_| {
            let (address, port) = (device::RECEIVER, Some(device::PORT));
            Arc::new(Tcp::new(connections(), address, port, config, content.octets(), Arc::clone(&run)))
        })
        .collect();
    let transport = |stream: usize| {
        let module = &modules[stream];
        (Synchronous(TcpReader(Arc::clone(module))), Synchronous(TcpWriter(Arc::clone(module))))
    };
    let mut outcome = drive::<L, _, _, _>(settings, &run, &devices, transport, PreparedConnection::stop)?;
    outcome.connections = modules.iter().flat_map(|module| module.statistics()).collect();
    outcome.senders = devices.iter().map(|device| device.counts()).collect();
    if outcome.in_order != total as u64 || run.counts().iter().any(|count| *count != 1) {
        return Err(StackError::Incorrect("the messages are not those that were sent, once each".to_owned()));
    }
    if outcome.senders.iter().any(|sender| sender.invalid > 0) {
        return Err(StackError::Incorrect("the receiver has sent segments that are not valid".to_owned()));
    }
    Ok(outcome)
}

/// Builds a stream over each device, and measures it until all messages have come. `stop` makes a device end.
fn drive<L: Monitor, D, R, W>(
    settings: &Settings,
    run: &Arc<Run>,
    devices: &[Arc<D>],
    transport: impl Fn(usize) -> (R, W),
    stop: impl Fn(&D),
) -> Result<Outcome, StackError>
where
    MessageQueue<Message, L>: Send + Sync,
    Guarded<Order, L>: Send + Sync,
    D: Device,
    R: spandrel_stream::Task<L>,
    W: spandrel_stream::Task<L>,
{
    let content = Content::of_octets(settings.octets);
    let messages = settings.messages / devices.len();
    let is_task = settings.architecture == Architecture::Task;
    let mut streams = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let receiver = Receiver {
            content,
            run: Arc::clone(run),
            first: index * messages,
            first_port: device::FIRST_SENDER_PORT + index as u16,
            messages,
            orders: vec![Guarded::<Order, L>::default()],
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
        let stream = Stream::<L>::new("stack");
        stream.push(Module::reader("application", Synchronous(receiver)))?;
        stream.insert("application", Module::reader("xdr", xdr))?;
        stream.insert("xdr", Module::new("transport", reader, writer))?;
        let dlp = Module::new("dlp", dlp, Synchronous(DlpWriter { device: Arc::clone(device) }));
        stream.insert("transport", dlp)?;
        streams.push(stream);
    }
    let waits = Waits::so_far();
    let begin = run.open(settings.threads)?;
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
