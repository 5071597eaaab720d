//! `ttcp` over two stacks: applications send messages through XDR, TCP and the data link of one stack to another one.

use std::net::SocketAddrV4;
use std::ops::Range;
use std::time::Duration;

use spandrel_stream::{LockFree, MapManager, Message, MessageKind, Module, QueueStrategy, Stream, Synchronous, Wait};
use spandrel_sync::{AdaptiveMutex, Arc, Guarded, Monitor, Mutex};

use crate::application::{Clustered, Order, Outgoing, Receiver, XdrReader, XdrWriter};
use crate::architecture::{Architecture, Locks, Queues};
use crate::connections::{Connection, Connections, OwnedByThread, Shared, TcpAddr};
use crate::device::{FIRST_SENDER_PORT, PORT, RECEIVER, SENDER};
use crate::dlp::{DlpReader, DlpWriter};
use crate::link::LinkEnd;
use crate::measurement::{LIMIT, Outcome, Run, StackError};
use crate::tcp::Config;
use crate::timed::{Timed, Waits};
use crate::transport::{PersistentTcpWriter, Tcp, TcpReader, TcpWriter};
use crate::xdr::Content;

/// The stacks and the data of a transfer between them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The process architecture of both stacks. In the task-based one, a thread of the sending stack takes messages of
    /// all its applications from a queue, and runs TCP and the data link; in the message-based one, the applications do.
    pub architecture: Architecture,
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
    /// The threads of the receiving side: of one stack in the message-based architecture, of a stack for each two in
    /// the task-based one. Each receiving stack has a link and a sending stack of its own.
    pub threads: usize,
    /// The locks of queues, maps and control blocks.
    pub locks: Locks,
    /// The queues of the task-based architecture.
    pub queues: Queues,
    /// The frames that a link holds in each direction; those beyond are lost.
    pub link: usize,
}

impl Settings {
    fn is_task(&self) -> bool {
        self.architecture == Architecture::Task
    }

    /// The number of receiving stacks.
    fn stacks(&self) -> Result<usize, StackError> {
        if self.threads == 0 || (self.is_task() && !self.threads.is_multiple_of(2)) {
            return Err(StackError::Settings("the task-based architecture has threads in multiples of two".to_owned()));
        }
        let stacks = if self.is_task() { self.threads / 2 } else { 1 };
        if self.applications < stacks {
            let message =
                format!("each of the {stacks} stacks needs an application, and there are {}", self.applications);
            return Err(StackError::Settings(message));
        }
        Ok(stacks)
    }
}

/// Transfers all messages, and checks them.
///
/// # Errors
/// [`StackError`]: above all, if the receiver did not get what was sent.
pub fn transfer(settings: &Settings) -> Result<Outcome, StackError> {
    match (settings.locks, settings.queues) {
        (Locks::Sleeping, Queues::Locked) => transfer_with::<Timed<Mutex>, Timed<Mutex>>(settings),
        (Locks::Sleeping, Queues::LockFree) => transfer_with::<Timed<Mutex>, LockFree>(settings),
        (Locks::Adaptive, Queues::Locked) => transfer_with::<Timed<AdaptiveMutex>, Timed<AdaptiveMutex>>(settings),
        (Locks::Adaptive, Queues::LockFree) => transfer_with::<Timed<AdaptiveMutex>, LockFree>(settings),
    }
}

/// Transfers with the locks `L` and the queues `Q`.
fn transfer_with<L: Monitor, Q: QueueStrategy<Queue: Send + Sync>>(settings: &Settings) -> Result<Outcome, StackError>
where
    Guarded<Order, L>: Send + Sync,
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    let stacks = settings.stacks()?;
    let content = Content::of_octets(settings.octets);
    let total = settings.applications * settings.messages;
    // In the task-based architecture, each stack has a thread for its upper cluster, too.
    let device_threads = if settings.is_task() { 2 * stacks } else { settings.threads + 1 };
    let threads = if settings.is_task() { 2 * device_threads } else { device_threads };
    let run = Arc::new(Run::new(total, total as u64, true, false, threads));
    let pairs: Vec<_> = (0..stacks)
        .map(|stack| {
            let applications = stack * settings.applications / stacks..(stack + 1) * settings.applications / stacks;
            match settings.architecture {
                Architecture::Task => Pair::<L, Q>::new(settings, &run, content, applications, OwnedByThread),
                Architecture::Message => Pair::new(settings, &run, content, applications, Shared::<L>::new()),
            }
        })
        .collect::<Result<_, _>>()?;

    let waits = Waits::so_far();
    let begin = run.open()?;
    let complete = std::thread::scope(|scope| {
        let applications: Vec<_> = pairs
            .iter()
            .flat_map(|pair| pair.applications.clone().map(move |number| (&pair.sending, number)))
            .map(|(sending, number)| scope.spawn(move || send(sending, number, settings.messages, content)))
            .collect();
        for application in applications {
            application.join().map_err(|_| StackError::Incorrect("an application has panicked".to_owned()))??;
        }
        run.until_complete()
    });
    let waits = Waits::so_far().since(waits);
    pairs.iter().flat_map(|pair| &pair.devices).for_each(|device| device.stop());
    run.until_ended(device_threads)?;
    for pair in &pairs {
        pair.sending.close(LIMIT)?;
        pair.receiving.close(LIMIT)?;
    }
    let outcome = run.outcome(complete? - begin, content.octets())?;
    if outcome.in_order != total as u64 || run.counts().iter().any(|count| *count != 1) {
        return Err(StackError::Incorrect("the messages are not those that were sent, once each".to_owned()));
    }
    let connections = pairs.iter().flat_map(|pair| pair.sender.statistics()).collect();
    Ok(Outcome { waits, connections, ..outcome })
}

/// The application of that number sends its messages.
fn send<Q: QueueStrategy<Queue: Send + Sync>>(
    sending: &Stream<Q>,
    application: usize,
    messages: usize,
    content: Content,
) -> Result<(), StackError> {
    let local = SocketAddrV4::new(SENDER, FIRST_SENDER_PORT + application as u16);
    let address = TcpAddr { local, remote: SocketAddrV4::new(RECEIVER, PORT) };
    (0..messages).try_for_each(|number| {
        let outgoing = Outgoing { elements: content.message(number), address };
        let message = Message::new(MessageKind::Data).with_control(outgoing);
        sending.put(message, Wait::Forever).map_err(|error| StackError::Incorrect(error.to_string()))
    })
}

/// A sending and a receiving stack at both ends of a link.
struct Pair<L: Monitor, Q: QueueStrategy> {
    sending: Stream<Q>,
    receiving: Stream<Q>,
    /// The transport of the sending stack. Several threads use it in each architecture: those that send, and that of
    /// the data link, which receives acknowledgements.
    sender: Arc<Tcp<Shared<L>>>,
    devices: [Arc<LinkEnd>; 2],
    /// The numbers of the applications that send.
    applications: Range<usize>,
}

impl<L: Monitor, Q: QueueStrategy<Queue: Send + Sync>> Pair<L, Q>
where
    Guarded<Order, L>: Send + Sync,
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    /// Builds both stacks for these applications. `connections` are those of the receiving stack.
    fn new(
        settings: &Settings,
        run: &Arc<Run>,
        content: Content,
        applications: Range<usize>,
        connections: impl Connections,
    ) -> Result<Self, StackError> {
        let config = Config {
            max_segment: settings.segment.clamp(64, 60_000) as u16,
            receive_buffer: settings.window,
            send_buffer: settings.window,
            acknowledgment_delay: Duration::from_millis(1),
            min_timeout: Duration::from_millis(20),
            no_delay: true,
            ..Config::default()
        };
        let sender = Arc::new(Tcp::new(Shared::new(), SENDER, None, config, content.octets(), Arc::clone(run)));
        let receiver = Tcp::new(connections, RECEIVER, Some(PORT), config, content.octets(), Arc::clone(run));
        let application = Receiver {
            content,
            run: Arc::clone(run),
            first: applications.start * settings.messages,
            first_port: FIRST_SENDER_PORT + applications.start as u16,
            messages: settings.messages,
            orders: applications.clone().map(|_| Guarded::<Order, L>::default()).collect(),
        };
        let is_task = settings.is_task();
        let threads = if is_task { 1 } else { settings.threads };
        let devices = LinkEnd::pair(settings.link).map(Arc::new);
        let sender_writer = Self::clustered(PersistentTcpWriter(Arc::clone(&sender)), is_task, run);
        let sender_transport = Module::new("transport", Synchronous(TcpReader(Arc::clone(&sender))), sender_writer);
        let sending = Stream::new("sender");
        sending.push(Module::writer("xdr", Synchronous(XdrWriter)))?;
        sending.insert("xdr", sender_transport)?;
        sending.insert("transport", Self::data_link(&devices[0], 1, run))?;

        let receiver = Arc::new(receiver);
        let transport = (Synchronous(TcpReader(Arc::clone(&receiver))), Synchronous(TcpWriter(receiver)));
        let receiving = Stream::new("receiver");
        receiving.push(Module::reader("application", Synchronous(application)))?;
        let xdr = Self::clustered(XdrReader { run: Arc::clone(run) }, is_task, run);
        receiving.insert("application", Module::reader("xdr", xdr))?;
        receiving.insert("xdr", Module::new("transport", transport.0, transport.1))?;
        receiving.insert("transport", Self::data_link(&devices[1], threads, run))?;
        Ok(Self { sending, receiving, sender, devices, applications })
    }

    fn clustered<S>(service: S, has_thread: bool, run: &Arc<Run>) -> Clustered<S> {
        Clustered { service, has_thread, element: 0, run: Arc::clone(run) }
    }

    fn data_link(device: &Arc<LinkEnd>, threads: usize, run: &Arc<Run>) -> Module<Q> {
        let reader = DlpReader { device: Arc::clone(device), threads, element: 0, run: Arc::clone(run) };
        Module::new("dlp", reader, Synchronous(DlpWriter { device: Arc::clone(device) }))
    }
}
