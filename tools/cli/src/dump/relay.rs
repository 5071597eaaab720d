//! Standing between clients and a server: octets go on as they are, and are shown. No privileges are needed for that.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;

use super::{
    Output,
    conversation::{Conversation, Style, Way},
    typed::Types,
};
use crate::common;

/// Connections at a time; further ones are closed.
const MAX_CONNECTIONS: usize = 256;
/// Pieces that wait to be shown before octets wait to go on.
const MAX_WAITING: usize = 1024;

/// How long what was shown may take to be passed on, once nothing more is to be shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where octets go to be shown.
#[derive(Clone)]
struct Stage {
    events: SyncSender<Event>,
    /// How many pieces are shown, perhaps, and not yet passed on.
    between: Arc<(Mutex<usize>, Condvar)>,
}

impl Stage {
    /// Shows it. Where nobody shows anything any more, it goes on all the same.
    fn show(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// Shows octets before they are passed on, so that no answer is shown before its question.
    fn show_and<R>(&self, event: Event, pass_on: impl FnOnce() -> R) -> R {
        let count = || self.between.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *count() += 1;
        self.show(event);
        let passed = pass_on();
        *count() -= 1;
        self.between.1.notify_all();
        passed
    }
}

/// What happened on a connection.
struct Event {
    connection: usize,
    time: Duration,
    what: What,
}

enum What {
    Begun { client: String, server: String },
    Octets(Way, Vec<u8>),
    Ended(Way),
}

/// Listens, and shows what goes through.
///
/// # Errors
/// If it cannot listen; those of printing.
pub(super) fn run(listen: &str, to: &str, types: &mut Types, style: Style, out: &mut Output) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr()?;
    // So that a port that the system has chosen is known.
    common::note(&format!("listening on {address}, passing on to {to}\n"));
    let (events, shown) = mpsc::sync_channel(MAX_WAITING);
    let (to, between) = (to.to_owned(), Arc::default());
    let stage = Stage { events, between: Arc::clone(&between) };
    thread::spawn(move || accept(&listener, &to, &stage));
    let done = show(&shown, types, style, out);
    // Nobody waits to be shown, so that only peers can keep it waiting.
    drop(shown);
    let (count, passed) = &*between;
    let count = count.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // What has not been passed on by then, is not.
    let _ = passed.wait_timeout_while(count, PATIENCE, |count| *count > 0);
    done
}

fn show(shown: &Receiver<Event>, types: &mut Types, style: Style, out: &mut Output) -> anyhow::Result<()> {
    let mut open: HashMap<usize, (Conversation, u8)> = HashMap::new();
    for Event { connection, time, what } in shown {
        let told = match what {
            What::Begun { client, server } => {
                open.insert(connection, (Conversation::default(), 0));
                out.begin(connection, &client, &server)?;
                continue;
            }
            What::Octets(way, octets) => match open.get_mut(&connection) {
                Some((conversation, _)) => conversation.take(way, time, &octets, types, style),
                None => continue,
            },
            What::Ended(way) => match open.get_mut(&connection) {
                Some((conversation, ends)) => {
                    *ends += 1;
                    let told = conversation.end(way, time);
                    if *ends == 2 {
                        open.remove(&connection);
                    }
                    told
                }
                None => continue,
            },
        };
        for mut one in told {
            one.connection = connection;
            out.tell(&one)?;
        }
    }
    Ok(())
}

fn accept(listener: &TcpListener, to: &str, stage: &Stage) {
    let open = Arc::new(AtomicUsize::new(0));
    let mut count = 0;
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        if open.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            common::note(&format!("a client was turned away: {MAX_CONNECTIONS} connections are open\n"));
            continue;
        }
        count += 1;
        open.fetch_add(1, Ordering::Relaxed);
        let (to, stage, open) = (to.to_owned(), stage.clone(), Arc::clone(&open));
        thread::spawn(move || {
            if let Err(error) = pass_on(client, &to, count, &stage) {
                common::note(&format!("#{count} {error}\n"));
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Passes on what comes from either side, until both have ended.
fn pass_on(client: TcpStream, to: &str, connection: usize, stage: &Stage) -> io::Result<()> {
    let server = TcpStream::connect(to)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot connect to {to}: {error}")))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let begun = What::Begun { client: client.peer_addr()?.to_string(), server: server.peer_addr()?.to_string() };
    stage.show(Event { connection, time: now(), what: begun });
    let (back, from) = (client.try_clone()?, server.try_clone()?);
    let replies = {
        let stage = stage.clone();
        thread::spawn(move || copy(from, back, connection, Way::Back, &stage))
    };
    copy(client, server, connection, Way::Out, stage);
    // It does not panic.
    let _ = replies.join();
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream, connection: usize, way: Way, stage: &Stage) {
    let mut room = vec![0; 64 << 10];
    loop {
        let count = match from.read(&mut room) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let event = Event { connection, time: now(), what: What::Octets(way, room[..count].to_vec()) };
        if stage.show_and(event, || to.write_all(&room[..count])).is_err() {
            // What was sent to it will not be read.
            let _ = from.shutdown(Shutdown::Read);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    stage.show(Event { connection, time: now(), what: What::Ended(way) });
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
