//! A gateway: forwards connections by rules (paper 002's example of a router).
//!
//! A rule is `LISTEN=TARGET[,TARGET…]`: connections to the one address go to the first of the others that accepts them,
//! beginning with another one each time. Each connection has two threads, which copy octets as fast as the slower side
//! takes them, and pass the end of each direction on.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use spandrel::net::ipc::inet::{Addr, Connector, Inet, Stream};
use spandrel::net::ipc::{Family as _, Interest};
use spandrel::net::reactor::{Context, Listening};
use spandrel::net::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use spandrel::net::sync::{Arc, Mutex, ThreadManager, Weak};
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

use crate::arguments::parse;
use crate::numbers::{connections, count};

/// The octets that are copied at once.
const CHUNK: usize = 64 * 1024;
/// The time that the threads may take to end.
const END: Duration = Duration::from_secs(2);

/// An address at which the gateway listens, and those to which its connections go.
#[derive(Clone, Debug)]
struct Rule {
    listen: Addr,
    targets: Vec<Addr>,
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (listen, targets) = text.split_once('=').ok_or("expected LISTEN=TARGET[,TARGET…]")?;
        let address = |text: &str| text.parse::<Addr>().map_err(|error| format!("`{text}`: {error}"));
        let targets = targets.split(',').map(address).collect::<Result<_, _>>()?;
        Ok(Self { listen: address(listen)?, targets })
    }
}

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    /// A rule; may be given more than once
    #[arg(short = 'r', value_name = "LISTEN=TARGET,…", required = true)]
    rules: Vec<Rule>,
    /// The maximum number of connections
    #[arg(short = 'm', value_name = "NUMBER", default_value_t = 500)]
    most: usize,
    /// The time in seconds that a connection to a target may take
    #[arg(short = 't', value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// The time in seconds after which a connection without octets in either direction is closed
    #[arg(short = 'i', value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
}

/// The state that all rules share.
struct Shared {
    threads: ThreadManager,
    most: usize,
    open: AtomicUsize,
    octets: AtomicU64,
    failed: AtomicU64,
    timeout: Duration,
    idle: Duration,
    /// Both ends of all connections, to end them.
    streams: Mutex<Vec<Weak<Stream>>>,
}

/// The rules, with the addresses at which the gateway really listens.
struct Running {
    rules: Vec<Rule>,
    shared: Arc<Shared>,
}

/// Forwards connections to other addresses, by rules in the service's arguments.
#[derive(Default)]
pub struct Gateway {
    running: Mutex<Option<Running>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl SharedObject for Gateway {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let shared = Arc::new(Shared {
            threads: ThreadManager::with_limit(args.most.saturating_mul(2)),
            most: args.most,
            open: AtomicUsize::new(0),
            octets: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            timeout: Duration::from_secs(args.timeout),
            idle: Duration::from_secs(args.idle),
            streams: Mutex::new(Vec::new()),
        });
        let mut rules = Vec::new();
        for Rule { listen, targets } in args.rules {
            let failed = |error| format!("cannot listen at {listen}: {error}");
            let acceptor = Inet::default().open(&listen).map_err(failed)?;
            acceptor.set_nonblocking(true)?;
            rules.push(Rule { listen: acceptor.local_addr()?, targets: targets.clone() });
            let (shared, mut first) = (Arc::clone(&shared), 0);
            let on_accept = move |_: &Context<'_>, client: Stream, _: Addr| {
                first = (first + 1) % targets.len();
                shared.accept(client, &targets, first)
            };
            context.registry().register(Listening::<Inet, _>::new(acceptor, on_accept), Interest::INPUT)?;
        }
        *self.running.lock() = Some(Running { rules, shared });
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        let Some(Running { shared, .. }) = self.running.lock().take() else { return Ok(()) };
        for stream in shared.streams.lock().drain(..).filter_map(|stream| stream.upgrade()) {
            _ = stream.close_writer();
            _ = stream.close_reader();
        }
        _ = shared.threads.wait_for(END)?; // a thread that has panicked has ended, too
        Ok(())
    }

    fn metrics(&self) -> String {
        let Some(Running { shared, .. }) = &*self.running.lock() else { return String::new() };
        let mut text = connections(shared.open.load(Ordering::Relaxed));
        let octets = shared.octets.load(Ordering::Relaxed);
        count(&mut text, "spandrel_gateway_octets_total", "Octets that were forwarded, in both directions.", octets);
        let failed = shared.failed.load(Ordering::Relaxed);
        count(&mut text, "spandrel_gateway_failed_total", "Connections for which no target was reached.", failed);
        text
    }

    fn info(&self) -> String {
        let running = self.running.lock();
        let Some(Running { rules, shared }) = &*running else { return "gateway # not linked".to_owned() };
        let rule = |Rule { listen, targets }: &Rule| {
            let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
            format!("{listen}/tcp -> {}", targets.join(","))
        };
        let rules: Vec<String> = rules.iter().map(rule).collect();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        format!(
            "{} # gateway, {} connections, {} octets, {} without a target",
            rules.join(" "),
            shared.open.load(Ordering::Relaxed),
            count(&shared.octets),
            count(&shared.failed)
        )
    }
}

impl ServiceObject for Gateway {}

impl Shared {
    /// Forwards a connection in threads of its own.
    fn accept(self: &Arc<Self>, client: Stream, targets: &[Addr], first: usize) -> io::Result<()> {
        if self.open.fetch_add(1, Ordering::SeqCst) >= self.most {
            self.open.fetch_sub(1, Ordering::SeqCst);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "the gateway has as many connections as it may"));
        }
        client.set_nonblocking(false)?;
        let order: Vec<Addr> = targets[first..].iter().chain(&targets[..first]).cloned().collect();
        let shared = Arc::clone(self);
        let forward = move |_: &spandrel::net::sync::ThreadContext| {
            shared.forward(client, &order);
            shared.open.fetch_sub(1, Ordering::SeqCst);
        };
        self.threads.spawn("gateway", forward).map_err(|error| {
            self.open.fetch_sub(1, Ordering::SeqCst);
            io::Error::other(error)
        })?;
        Ok(())
    }

    fn forward(self: &Arc<Self>, client: Stream, targets: &[Addr]) {
        let connector = Connector::new().timeout(self.timeout);
        let Some(target) = targets.iter().find_map(|target| connector.open(target).ok()) else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        for stream in [&client, &target] {
            if stream.set_recv_timeout(Some(self.idle)).is_err() {
                return;
            }
        }
        let (client, target) = (Arc::new(client), Arc::new(target));
        {
            let mut streams = self.streams.lock();
            streams.retain(|stream| stream.strong_count() > 0);
            streams.extend([Arc::downgrade(&client), Arc::downgrade(&target)]);
        }
        let transfers = Arc::<AtomicU64>::default();
        let (shared, from, to, counted) =
            (Arc::clone(self), Arc::clone(&target), Arc::clone(&client), Arc::clone(&transfers));
        let back = self.threads.spawn("gateway", move |_: &_| shared.copy(&from, &to, &counted));
        if back.is_ok() {
            self.copy(&client, &target, &transfers);
        }
    }

    /// Copies one direction until its end, or until neither direction has had a transfer for the time of an idle connection.
    fn copy(&self, from: &Stream, to: &Stream, transfers: &AtomicU64) {
        let mut octets = vec![0; CHUNK];
        loop {
            let before = transfers.load(Ordering::Relaxed);
            match from.recv(&mut octets) {
                Ok(0) => break,
                Ok(count) if to.send_n(&octets[..count]).is_ok() => {
                    transfers.fetch_add(1, Ordering::Relaxed);
                    self.octets.fetch_add(count as u64, Ordering::Relaxed);
                }
                // The receiver takes no more; it may still send.
                Ok(_) => {
                    _ = from.close_reader();
                    break;
                }
                Err(error) if is_timeout(&error) && transfers.load(Ordering::Relaxed) != before => {}
                Err(_) => {
                    _ = from.close_reader();
                    _ = to.close_reader();
                    break;
                }
            }
        }
        _ = to.close_writer();
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
