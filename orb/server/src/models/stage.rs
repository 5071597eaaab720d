//! The fixtures of the models: a servant that records its calls, a transport that checks the reading thread,
//! and a served connection with its client.

use std::{
    collections::HashSet,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_connection::{HandOverTimes, MonitorTimes, ReaderWord};
use spandrel_giop::{LocateReplyHeader, MessageType, ReplyHeader, ReplyStatus, SystemException};
use spandrel_ipc::Pollable;
use spandrel_orb::{
    CancelReason, Concurrency, Orb, QueueOverflow,
    internal::{ServerSettings, Spawner},
    models::{
        messages::{self, FakeRequest},
        one_in,
        pipe::{self, PipeEnd},
    },
};
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread, time::Deadline};
use spandrel_transport::{Address, ReactorTransport, ReadError, Transport, send_octets};

use super::{cancelled, deferred, one_servant::OneServant, reactor};
use crate::{
    DeferredCall, Replied, Servant, ServerCall, ServerConnection,
    connection::{ClosePhase, ServiceStrategy},
    listener::Server,
    monitor::{LongUpcall, MonitoredConnection},
    nesting,
    resources::ServerResources,
    threads::ServerThreads,
};

/// The token of a request whose upcall waits until a [`RELEASE`] has run.
pub(super) const HOLD: u32 = 1;
/// The token of a request that ends the waits of the others.
pub(super) const RELEASE: u32 = 2;
/// The token of a request whose thread runs others until a [`RELEASE`] has run.
pub(super) const NEST: u32 = 3;

/// The limit of running upcalls on a connection of these models.
pub(super) const MAX_IN_FLIGHT: u32 = 3;

/// A day: longer than each wait of a model.
pub(super) const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// A servant that records its calls.
#[derive(Debug, Default)]
pub(super) struct Diary {
    pub(super) entries: Mutex<Entries>,
    pub(super) changed: Condition,
    /// The reactor whose threads run the servant, in the models with a reactor.
    pub(super) reactor: Mutex<Weak<reactor::Reactor>>,
}

impl Diary {
    pub(super) fn release(&self) {
        self.entries.lock().released += 1;
        self.changed.notify_all();
        let reactor = self.reactor.lock().upgrade();
        if let Some(reactor) = reactor {
            reactor.look();
        }
    }

    /// Waits for the release, and runs other requests meanwhile.
    pub(super) fn nest(&self) -> Result<(), SystemException> {
        nesting::release_reading()?;
        let reactor = self.reactor.lock().upgrade().expect("a reactor runs this");
        reactor.serve_until(|| self.entries.lock().released > 0);
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The tokens of the requests that have begun.
    pub(super) begun: Vec<u32>,
    /// The threads that ran them, except for deferred requests.
    pub(super) threads: Vec<thread::ThreadId>,
    /// Threads that panic when they handle a LocateRequest.
    pub(super) nervous: HashSet<thread::ThreadId>,
    pub(super) running: u32,
    pub(super) most_running: u32,
    pub(super) released: u32,
    /// Requests that another thread answers.
    pub(super) deferred: Vec<(u32, DeferredCall)>,
    /// Whether the answering thread has to end.
    pub(super) is_enough: bool,
    /// The reasons for which servants were cancelled.
    pub(super) cancelled: Vec<CancelReason>,
}

impl Servant for Diary {
    fn repository_id(&self) -> &str {
        "IDL:Diary:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn non_existent(&self) -> bool {
        if self.entries.lock().nervous.contains(&thread::current().id()) {
            // A panic without its message on stderr.
            std::panic::resume_unwind(Box::new("asked where"));
        }
        false
    }

    fn dispatch(&self, _: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let token = call.arguments()?.u32()?;
        let mut entries = self.entries.lock();
        entries.begun.push(token);
        if token >= deferred::DEFERRED {
            let (call, replied) = call.defer()?;
            entries.deferred.push((token, call));
            drop(entries);
            self.changed.notify_all();
            return Ok(replied);
        }
        entries.threads.push(thread::current().id());
        entries.running += 1;
        entries.most_running = entries.most_running.max(entries.running);
        self.changed.notify_all();
        if token == HOLD {
            self.changed.wait_while(&mut entries, |entries| entries.released == 0);
        }
        drop(entries);
        if token == cancelled::CANCELLABLE {
            let cancellation = call.cancellation();
            assert!(cancellation.wait_timeout(NEVER * 1000));
            self.entries.lock().cancelled.extend(cancellation.reason());
        }
        let nested = match token {
            RELEASE => {
                self.release();
                Ok(())
            }
            NEST => self.nest(),
            _ => Ok(()),
        };
        let replied = if let Err(exception) = nested {
            Err(exception)
        } else if call.is_response_expected() {
            call.reply(|out| {
                out.u32(token);
                out.octet_sequence(&[])
            })
        } else {
            Ok(call.finish_oneway())
        };
        self.entries.lock().running -= 1;
        replied
    }
}

/// A transport that checks which thread reads.
#[derive(Debug)]
pub(super) struct Attended {
    pub(super) end: PipeEnd,
    pub(super) readers: Arc<Mutex<Readers>>,
}

#[derive(Debug, Default)]
pub(super) struct Readers {
    pub(super) current: Option<thread::ThreadId>,
    pub(super) former: HashSet<thread::ThreadId>,
    /// Whether the input is only dropped, by the thread that ends the connection.
    pub(super) is_draining: bool,
    /// Whether the connection is served by a reactor, or by threads that take over from it.
    pub(super) is_pooled: bool,
    /// How often the reactor has read.
    pub(super) reads: u32,
}

impl Transport for Attended {
    fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        let me = thread::current().id();
        let mut readers = self.readers.lock();
        assert!(readers.is_draining || !readers.former.contains(&me), "a thread that lost the reader role reads again");
        let before = readers.current.replace(me).filter(|before| *before != me);
        readers.former.extend(before);
        drop(readers);
        self.end.recv(room)
    }

    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        let mut readers = self.readers.lock();
        // Without a reactor, this is the monitor's look ahead, which leaves the reader role where it is.
        if readers.is_pooled {
            readers.read_in_reactor();
        }
        drop(readers);
        self.end.try_recv(room)
    }

    fn send(&self, octets: &[u8]) -> io::Result<usize> {
        self.end.send(octets)
    }

    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.end.send_v(parts)
    }

    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut readers = self.readers.lock();
        readers.is_draining |= !readers.is_pooled;
        drop(readers);
        self.end.set_recv_timeout(timeout)
    }

    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.end.set_send_timeout(timeout)
    }

    fn close_writer(&self) {
        let mut readers = self.readers.lock();
        readers.is_draining |= readers.is_pooled;
        drop(readers);
        self.end.close_writer();
    }

    fn close(&self) {
        self.end.close();
    }
}

impl ReactorTransport for Attended {
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.end.try_send_v(parts)
    }

    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }
}

/// A served connection and the client's end of it.
pub(super) struct Stage {
    pub(super) resources: Arc<ServerResources>,
    pub(super) diary: Arc<Diary>,
    pub(super) connection: Arc<ServerConnection>,
    pub(super) near: PipeEnd,
    pub(super) readers: Arc<Mutex<Readers>>,
    pub(super) client: PipeEnd,
}

/// The messages that a client has received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) replies: Vec<u32>,
    pub(super) exceptions: usize,
    pub(super) located: u32,
    pub(super) closes: u32,
    pub(super) complaints: u32,
}

impl Stage {
    pub(super) fn new(orb: &Orb) -> Self {
        Self::with(orb, MAX_IN_FLIGHT, false)
    }

    pub(super) fn with(orb: &Orb, max_in_flight: u32, is_pooled: bool) -> Self {
        Self::served(orb, max_in_flight, if is_pooled { ServiceStrategy::Reactor } else { ServiceStrategy::OwnThread })
    }

    pub(super) fn served(orb: &Orb, max_in_flight: u32, service: ServiceStrategy) -> Self {
        Self::served_with(Concurrency::default(), orb, max_in_flight, service)
    }

    pub(super) fn served_with(
        concurrency: Concurrency,
        orb: &Orb,
        max_in_flight: u32,
        service: ServiceStrategy,
    ) -> Self {
        let is_pooled = !matches!(service, ServiceStrategy::OwnThread);
        let diary: Arc<Diary> = Arc::default();
        let adapter = crate::install_adapter(orb, Arc::new(OneServant(Arc::clone(&diary))));
        let (near, client) = pipe::pair(4096);
        let readers = Readers { is_pooled, ..Readers::default() };
        let readers = Arc::new(Mutex::new(readers));
        let transport = Attended { end: near.clone(), readers: Arc::clone(&readers) };
        let settings = ServerSettings {
            order: messages::wire().order,
            limits: messages::wire().limits,
            max_message: 1 << 16,
            max_in_flight,
            max_connections: 1,
            is_adaptive: false,
            send_timeout: None,
            max_connection_memory: 1 << 20,
            max_server_memory: 1 << 20,
            idle_timeout: None,
            message_timeout: None,
            queue_overflow: QueueOverflow::Wait,
            concurrency,
            // Replies that are held wait for tasks, which are dropped at any time.
            spawner: Some(Spawner(Arc::new(|task| drop(thread::spawn(move || drop(task)))))),
            ..ServerSettings::default()
        };
        let threads = Arc::new(ServerThreads::new(settings.thread_limit()));
        let mut resources = ServerResources::new(settings, adapter, threads, Arc::default(), service.queue());
        resources.hand_over = HandOverTimes::NONE;
        let resources = Arc::new(resources);
        let look = Duration::from_millis(1);
        // More looks would only make models longer.
        let times = MonitorTimes { shortest: look, longest: look, idle: look * 2, one_way: look * 3 };
        resources.upcall_monitor.begin_model(times);
        let connection = ServerConnection::new(
            orb.clone(),
            Arc::clone(&resources),
            Weak::<Server>::new(),
            Address::new("iiop", "pretend"),
            Box::new(transport),
            service,
        );
        Self { resources, diary, connection, near, readers, client }
    }

    pub(super) fn serve(&self) -> thread::JoinHandle<()> {
        let connection = Arc::clone(&self.connection);
        thread::spawn(move || connection.serve())
    }

    /// Acts as a monitor without delays: looks `times` times, and takes the reader role from the upcall that
    /// it finds.
    pub(super) fn hand_over_reading(&self, times: u32) -> thread::JoinHandle<()> {
        let connection = Arc::clone(&self.connection);
        thread::spawn(move || {
            for _ in 0..times {
                let word = connection.reader_word();
                if word.is_in_upcall() {
                    connection.overdue(&lasting(word, one_in(4)));
                }
            }
        })
    }

    /// Waits for an upcall that holds, takes the reader role from its thread and releases the upcall.
    pub(super) fn hand_over_and_release(&self) {
        let mut entries = self.diary.entries.lock();
        self.diary.changed.wait_while(&mut entries, |entries| entries.running == 0);
        drop(entries);
        self.connection.overdue(&lasting(self.connection.reader_word(), false));
        self.diary.release();
    }

    /// Closes the connection orderly and waits for its end.
    pub(super) fn shut_down(&self) -> thread::JoinHandle<()> {
        let connection = Arc::clone(&self.connection);
        thread::spawn(move || {
            connection.begin_close();
            for stage in [ClosePhase::CloseSent, ClosePhase::Ended] {
                connection.await_close_phase(stage, Deadline::NEVER);
            }
        })
    }

    /// Sends these messages in another thread. A server that ends does not read them all.
    pub(super) fn ask(&self, messages: Vec<Vec<u8>>) -> thread::JoinHandle<()> {
        let client = self.client.clone();
        thread::spawn(move || {
            let _ = messages.iter().try_for_each(|message| send_octets(&client, message));
        })
    }

    /// Reads until the connection ends or this number of replies has arrived.
    pub(super) fn receive(&self, replies: usize) -> Received {
        let (mut reader, mut received) = (messages::reader(), Received::default());
        while received.replies.len() < replies {
            match reader.next(&self.client, None) {
                Ok(message) => {
                    assert_eq!(received.closes, 0, "{message} came after CloseConnection");
                    let mut input = message.decoder(messages::wire().limits);
                    match message.header.message_type {
                        MessageType::Reply => match ReplyHeader::decode(&mut input).expect("a reply").status {
                            ReplyStatus::SystemException => received.exceptions += 1,
                            _ => received.replies.push(messages::token_in(&message, input.position())),
                        },
                        MessageType::LocateReply => {
                            LocateReplyHeader::decode(&mut input).expect("a reply");
                            received.located += 1;
                        }
                        MessageType::CloseConnection => received.closes += 1,
                        MessageType::MessageError => received.complaints += 1,
                        other => panic!("a server sent {other}"),
                    }
                }
                Err(ReadError::EndOfFile) => break,
                Err(error) => panic!("the server wrote nonsense: {error}"),
            }
        }
        received.replies.sort_unstable();
        received
    }

    /// The sorted tokens of the requests that were run.
    pub(super) fn begun(&self) -> Vec<u32> {
        let mut begun = self.diary.entries.lock().begun.clone();
        begun.sort_unstable();
        begun
    }

    pub(super) fn check_in_flight(&self) {
        let most = self.diary.entries.lock().most_running;
        assert!(most <= MAX_IN_FLIGHT, "{most} upcalls ran at once");
    }
}

/// A long upcall while there is input.
pub(super) fn lasting(word: ReaderWord, keeps_reading: bool) -> LongUpcall {
    LongUpcall { word, age: NEVER, keeps_reading, has_input: true }
}

pub(super) fn encoded(requests: &[FakeRequest]) -> Vec<Vec<u8>> {
    requests.iter().map(|request| messages::request(*request, 0).to_vec()).collect()
}

pub(super) fn two_way(token: u32) -> FakeRequest {
    FakeRequest { id: token, token, is_two_way: true, is_limited: false }
}

pub(super) fn one_way(token: u32) -> FakeRequest {
    FakeRequest { is_two_way: false, ..two_way(token) }
}

pub(super) fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
}
