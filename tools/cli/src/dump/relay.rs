//! A relay between clients and a server: octets are forwarded unchanged, and shown. Needs no privileges.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use spandrel::net::error::output;
use spandrel::net::ipc::inet::{Acceptor, Addr, Stream};
use spandrel::net::transport::{Address, Transport};

use super::{
    conversation::{Conversation, FlowDirection, Style},
    output::Output,
    typed::Types,
};
use crate::common;
use crate::orb_args::Server;

/// The maximum number of connections; further ones are closed.
const MAX_CONNECTIONS: usize = 256;
/// The maximum number of pieces queued for display; beyond, forwarding waits.
const MAX_WAITING: usize = 1024;

/// The time limit for forwarding shown pieces, after the last one is shown.
const FORWARDING_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue of pieces to show.
#[derive(Clone)]
struct DisplayQueue {
    events: SyncSender<Event>,
    /// The number of pieces that were queued for display, and not yet forwarded.
    unforwarded: Arc<(Mutex<usize>, Condvar)>,
}

impl DisplayQueue {
    /// Queues an event. Without a display, forwarding continues all the same.
    fn show(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// Queues octets before they are forwarded, so that no reply is shown before its request.
    fn show_and<R>(&self, event: Event, pass_on: impl FnOnce() -> R) -> R {
        let count = || self.unforwarded.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *count() += 1;
        self.show(event);
        let passed = pass_on();
        *count() -= 1;
        self.unforwarded.1.notify_all();
        passed
    }
}

/// An event of a connection.
struct Event {
    connection: usize,
    time: Duration,
    kind: EventKind,
}

enum EventKind {
    Opened { client: String, server: String },
    Octets(FlowDirection, Vec<u8>),
    Ended(FlowDirection),
}

/// Listens, and shows the forwarded octets.
///
/// # Errors
/// If it cannot listen; those of printing.
pub(super) fn run(listen: &str, to: Server, types: &mut Types, style: Style, out: &mut Output) -> anyhow::Result<()> {
    let listen_address = Address::new("iiop", listen);
    let Some((host, port)) = listen_address.host_and_port() else {
        return Err(common::usage(format!("invalid value `{listen}` for --listen: expected host:port")));
    };
    let opened = Addr::new(host, port).and_then(|address| Acceptor::open(&address));
    let listener = opened.with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr()?;
    // Printed, so that a port chosen by the system is known.
    output::remark(&format!("listening on {address}, passing on to {}\n", to.name()));
    let (events, shown) = mpsc::sync_channel(MAX_WAITING);
    let unforwarded = Arc::default();
    let display = DisplayQueue { events, unforwarded: Arc::clone(&unforwarded) };
    thread::spawn(move || accept(&listener, &to, &display));
    let done = show(&shown, types, style, out);
    // The queue keeps no forwarding thread waiting, so only peers can.
    drop(shown);
    let (count, passed) = &*unforwarded;
    let count = count.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Pieces that are not forwarded by then are lost.
    let _ = passed.wait_timeout_while(count, FORWARDING_TIMEOUT, |count| *count > 0);
    done
}

fn show(shown: &Receiver<Event>, types: &mut Types, style: Style, out: &mut Output) -> anyhow::Result<()> {
    let mut open: HashMap<usize, (Conversation, u8)> = HashMap::new();
    for Event { connection, time, kind } in shown {
        let summaries = match kind {
            EventKind::Opened { client, server } => {
                open.insert(connection, (Conversation::default(), 0));
                out.begin(connection, &client, &server)?;
                continue;
            }
            EventKind::Octets(direction, octets) => match open.get_mut(&connection) {
                Some((conversation, _)) => conversation.take(direction, time, &octets, types, style),
                None => continue,
            },
            EventKind::Ended(direction) => match open.get_mut(&connection) {
                Some((conversation, ended)) => {
                    *ended += 1;
                    let last = conversation.end(direction, time);
                    if *ended == 2 {
                        open.remove(&connection);
                    }
                    last
                }
                None => continue,
            },
        };
        for mut one in summaries {
            one.connection = connection;
            out.print(&one)?;
        }
    }
    Ok(())
}

fn accept(listener: &Acceptor, server: &Server, display: &DisplayQueue) {
    let open = Arc::new(AtomicUsize::new(0));
    let mut count = 0;
    loop {
        let Ok((client, address)) = listener.accept() else { continue };
        if open.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            output::remark(&format!("a client was rejected: {MAX_CONNECTIONS} connections are open\n"));
            continue;
        }
        count += 1;
        open.fetch_add(1, Ordering::Relaxed);
        let (server, display, open) = (server.clone(), display.clone(), Arc::clone(&open));
        thread::spawn(move || {
            if let Err(error) = pass_on(client, &address, &server, count, &display) {
                output::remark(&format!("#{count} {error}\n"));
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Forwards the octets of both sides, until both have ended.
fn pass_on(
    client: Stream,
    address: &Addr,
    server: &Server,
    connection: usize,
    display: &DisplayQueue,
) -> anyhow::Result<()> {
    client.set_no_delay(true)?;
    let client: Arc<dyn Transport> = Arc::new(client);
    let there = server.connect()?;
    let opened = EventKind::Opened { client: address.to_string(), server: server.name() };
    display.show(Event { connection, time: now(), kind: opened });
    let replies = {
        let (display, from, back) = (display.clone(), Arc::clone(&there), Arc::clone(&client));
        thread::spawn(move || copy(&*from, &*back, connection, FlowDirection::Back, &display))
    };
    copy(&*client, &*there, connection, FlowDirection::Out, display);
    // It does not panic.
    let _ = replies.join();
    Ok(())
}

fn copy(from: &dyn Transport, to: &dyn Transport, connection: usize, direction: FlowDirection, display: &DisplayQueue) {
    let mut room = vec![0; 64 << 10];
    loop {
        let count = match from.recv(&mut room) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let event = Event { connection, time: now(), kind: EventKind::Octets(direction, room[..count].to_vec()) };
        if display.show_and(event, || send_octets(to, &room[..count])).is_err() {
            // Nothing that is sent to it will be read: the other direction ends with it.
            from.close();
            break;
        }
    }
    to.close_writer();
    display.show(Event { connection, time: now(), kind: EventKind::Ended(direction) });
}

/// Writes all octets, in several calls if necessary.
fn send_octets(to: &dyn Transport, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match to.send(octets) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => octets = &octets[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
