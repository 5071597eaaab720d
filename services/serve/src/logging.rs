//! Logging: takes records from many processes over TCP, and writes them into one file.
//!
//! A record is a line with a JSON object. Its member `message`, or `fields.message`, is a text; the other members are the
//! sender's own (`timestamp`, `level`, `host`, `pid`, `program` by [`LogForwarder`](crate::LogForwarder)). The service adds
//! `peer`, the sender's address.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use spandrel::net::error::escape_lines;
use spandrel::net::ipc::Family;
use spandrel::net::ipc::inet::Inet;
use spandrel::net::reactor::framing::{FrameHandler, Framed, Lines};
use spandrel::net::reactor::strategy::AtMost;
use spandrel::net::reactor::{Acceptor, LogLimit, Peer, Server, Unlogged};
use spandrel::net::sync::atomic::{AtomicU64, Ordering};
use spandrel::net::sync::{Arc, Mutex};
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

use crate::arguments::{ListenArgs, parse};
use crate::http_request::is_http;
use crate::idle_limit::IdleLimit;
use crate::numbers::{connections, count};

/// The port of ACE's logging server.
pub const PORT: u16 = 20_009;
/// The length of the longest record, in octets.
pub const MAX_RECORD: usize = 64 * 1024;

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    #[command(flatten)]
    listen: ListenArgs,
    /// The file, to which records are added; standard output without it
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The place of the records.
struct Output {
    path: Option<PathBuf>,
    /// The file, or standard output for `None`.
    file: Option<File>,
}

impl Output {
    fn open(path: Option<PathBuf>) -> io::Result<Self> {
        let open = |path: &PathBuf| OpenOptions::new().create(true).append(true).open(path);
        let file = path.as_ref().map(open).transpose()?;
        Ok(Self { path, file })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stdout().lock().write_all(line.as_bytes()),
        }
    }
}

struct Shared {
    output: Mutex<Output>,
    records: AtomicU64,
    refused: AtomicU64,
    log_limit: LogLimit,
}

impl Shared {
    /// Writes a record; a wrong one is counted.
    fn take(&self, record: &[u8], peer: &str) -> io::Result<()> {
        let Some(line) = completed(record, peer) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            if let Some(Unlogged(unlogged)) = self.log_limit.admit("record") {
                tracing::warn!(peer, unlogged, "a line is no record: expected a JSON object with a message");
            }
            return Ok(());
        };
        self.output.lock().write(&line).inspect_err(|error| {
            if let Some(Unlogged(unlogged)) = self.log_limit.admit("output") {
                tracing::error!(%error, unlogged, "records cannot be written");
            }
        })?;
        self.records.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The line of a record; `None` if it is none.
fn completed(record: &[u8], peer: &str) -> Option<String> {
    let Ok(Value::Object(mut members)) = serde_json::from_slice(record) else { return None };
    let message = members.get("message").or_else(|| members.get("fields")?.get("message"));
    if !message.is_some_and(Value::is_string) {
        return None;
    }
    members.insert("peer".to_owned(), Value::from(peer));
    // A file of records is read in a terminal, too.
    Some(format!("{}\n", escape_lines(&Value::Object(members).to_string())))
}

struct Receiver(Arc<Shared>);

impl<F: Family> FrameHandler<F> for Receiver {
    fn handle_frame(&mut self, peer: &mut Peer<'_, F>, frame: &[u8]) -> io::Result<()> {
        if is_http(frame) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a request of HTTP is no record"));
        }
        self.0.take(frame, &peer.remote().to_string())
    }
}

/// Receives log records by the protocol of ACE's logging server.
#[derive(Default)]
pub struct Logging {
    running: Mutex<Option<(Server<Inet>, Arc<Shared>)>>,
}

impl std::fmt::Debug for Logging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logging").finish_non_exhaustive()
    }
}

impl SharedObject for Logging {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let failed = |error| format!("cannot write to {}: {error}", args.output.clone().unwrap_or_default().display());
        let shared = Arc::new(Shared {
            output: Mutex::new(Output::open(args.output.clone()).map_err(failed)?),
            records: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            log_limit: LogLimit::default(),
        });
        let (receiver, idle) = (Arc::clone(&shared), Duration::from_secs(args.listen.idle));
        let make = move || IdleLimit::new(Framed::new(Lines::new(MAX_RECORD), Receiver(Arc::clone(&receiver))), idle);
        let address = args.listen.address(PORT);
        let server = Acceptor::new(Inet::default(), make)
            .acceptance(AtMost(args.listen.most))
            .open(context.registry(), &address)
            .map_err(|error| format!("cannot listen at {address}: {error}"))?;
        *self.running.lock() = Some((server, shared));
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        if let Some((server, _)) = self.running.lock().take() {
            // Records that have arrived are still written.
            _ = server.drain(Duration::from_millis(500));
        }
        Ok(())
    }

    fn metrics(&self) -> String {
        let Some((server, shared)) = &*self.running.lock() else { return String::new() };
        let mut text = connections(server.connections());
        let records = shared.records.load(Ordering::Relaxed);
        count(&mut text, "spandrel_logging_records_total", "Records that were written.", records);
        let refused = shared.refused.load(Ordering::Relaxed);
        count(&mut text, "spandrel_logging_refused_total", "Lines that are no records.", refused);
        text
    }

    fn info(&self) -> String {
        let running = self.running.lock();
        let Some((server, shared)) = &*running else { return "logging # not linked".to_owned() };
        let (records, refused) = (shared.records.load(Ordering::Relaxed), shared.refused.load(Ordering::Relaxed));
        format!(
            "{}/tcp # logging, {} connections, {records} records, {refused} refused",
            server.addr(),
            server.connections()
        )
    }
}

impl ServiceObject for Logging {
    /// Opens the file again, which may have been renamed during the suspension.
    fn resume(&self) -> ServiceResult {
        if let Some((_, shared)) = &*self.running.lock() {
            let mut output = shared.output.lock();
            *output = Output::open(output.path.clone())?;
        }
        Ok(())
    }
}
