//! Sends the log of this process to a logging service.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use spandrel::diagnostics::log::LogTail;
use spandrel::net::sync::{Arc, Condition, Mutex, thread};

/// The interval between two looks at the log.
const LOOK: Duration = Duration::from_millis(100);
/// The wait after a failed connection.
const RECONNECT: Duration = Duration::from_secs(1);
/// The time that a write may take.
const WRITE: Duration = Duration::from_secs(5);

/// Sends the lines of a log, with the host, the program and the number of this process, to the logging service at an
/// address (`-k HOST:PORT`). Lines that the log no longer has when the service can be reached are lost. Dropping the value
/// sends what is there, and ends. A service that cannot be reached, or no longer, is named in one warning.
#[derive(Debug)]
pub struct LogForwarder {
    has_ended: Arc<(Mutex<bool>, Condition)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl LogForwarder {
    /// Starts the thread that sends.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(tail: LogTail, address: String) -> io::Result<Self> {
        let has_ended = Arc::<(Mutex<bool>, Condition)>::default();
        let ended = Arc::clone(&has_ended);
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || run(&tail, &address, &ended))?;
        Ok(Self { has_ended, thread: Some(thread) })
    }
}

impl Drop for LogForwarder {
    fn drop(&mut self) {
        *self.has_ended.0.lock() = true;
        self.has_ended.1.notify_all();
        self.thread.take().map(thread::JoinHandle::join);
    }
}

fn run(tail: &LogTail, address: &str, ended: &(Mutex<bool>, Condition)) {
    let (mut seen, mut stream, mut is_reported) = (0, None::<TcpStream>, false);
    loop {
        let (lines, after) = tail.after(seen);
        let mut wait = LOOK;
        if !lines.is_empty() {
            let sent = stream.take().map_or_else(|| connect(address), Ok).and_then(|mut stream| {
                let text: String = lines.iter().filter_map(|line| record(line)).collect();
                stream.write_all(text.as_bytes()).map(|()| stream)
            });
            match sent {
                Ok(used) => (stream, seen, is_reported) = (Some(used), after, false),
                Err(error) => {
                    if !is_reported {
                        tracing::warn!(service = address, %error, "the logging service (-k) cannot be reached");
                    }
                    (is_reported, wait) = (true, RECONNECT);
                }
            }
        }
        let mut has_ended = ended.0.lock();
        if *has_ended && (lines.is_empty() || stream.is_none()) {
            return;
        }
        if !*has_ended {
            ended.1.wait_for(&mut has_ended, wait);
        }
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(WRITE))?;
    Ok(stream)
}

/// A line of the log with the names of this process.
fn record(line: &str) -> Option<String> {
    let Ok(Value::Object(mut members)) = serde_json::from_str(line) else { return None };
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|program| program.file_stem()?.to_str()).unwrap_or_default();
    members.insert("program".to_owned(), program.into());
    members.insert("pid".to_owned(), std::process::id().into());
    #[cfg(unix)]
    members.insert("host".to_owned(), rustix::system::uname().nodename().to_string_lossy().into());
    Some(format!("{}\n", Value::Object(members)))
}
