//! The audit log: a line of JSON for each decision, in a file of bounded size.
//!
//! A thread writes the file, so that a slow or failing disk delays no request. Lines above the limit per second, and
//! those for which the queue has no room, are counted instead; the next line has their number.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::{Duration, SystemTime},
};

use serde::Serialize;
use spandrel_poa::describe_key;
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
    thread,
    time::Instant,
};

use crate::credentials::ReceivedCredentials;

/// The lines that wait to be written.
const QUEUE: usize = 4096;
/// The most octets that are written at once.
const BATCH: usize = 64 << 10;
/// The longest text of a field that peers choose, in characters.
const MAX_TEXT: usize = 256;
/// The time between two attempts to open a file that failed.
const RETRY: Duration = Duration::from_secs(1);
/// The longest wait for the last lines when the log is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The size of an audit log's files, their number, and the rate of lines.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The size in octets from which the file is renamed and a new one begun (default 64 MiB).
    pub max_octets: u64,
    /// The number of renamed files that are kept: `FILE.1` is the newest (default 5).
    pub kept_files: u32,
    /// The most lines in a second (default 1,000). Further ones are counted in the next line: `suppressed`.
    pub max_lines_per_second: u64,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { max_octets: 64 << 20, kept_files: 5, max_lines_per_second: 1000 }
    }
}

/// A failure to open an audit log, with its file.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit log {}", file.display())]
pub struct AuditError {
    file: PathBuf,
    #[source]
    error: io::Error,
}

/// A log of decisions: one JSON object per line.
///
/// | field | content |
/// | --- | --- |
/// | `time` | RFC 3339, UTC, milliseconds |
/// | `decision` | `allow` or `deny` |
/// | `rule` | the line of the deciding rule in the policy file; absent if no rule matched |
/// | `address` | the address of the peer |
/// | `cn`, `issuer`, `uid` | its common name, the authority of its certificate, its user id; absent if not known |
/// | `operation` | the operation; absent for a LocateRequest |
/// | `object` | the plain key, or the adapter and the id in a key of this ORB; at most 256 characters |
/// | `adapter`, `interface` | the object's adapter and repository id, if they were needed to decide |
/// | `path` | the path, for decisions about one |
/// | `suppressed` | the number of decisions since the last line that were not written |
///
/// If the file cannot be written, the ORB's log says so (level `error`), requests are served on, and the file is tried
/// again every second. The decisions meanwhile are lost; the next line has their number.
#[derive(Debug)]
pub struct AuditLog {
    /// `None` once it is closed.
    queue: Option<SyncSender<String>>,
    limit: Mutex<LineLimit>,
    suppressed: Arc<AtomicU64>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// The lines of the present second.
#[derive(Debug)]
struct LineLimit {
    since: Instant,
    lines: u64,
    max: u64,
}

impl LineLimit {
    fn admits(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.lines = 0;
        }
        self.lines += 1;
        self.lines <= self.max
    }
}

/// A decision.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AuditRecord<'r> {
    pub(crate) time: String,
    pub(crate) decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<usize>,
    pub(crate) address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cn: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operation: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) adapter: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interface: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<&'r str>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) suppressed: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AuditLog {
    /// Opens the file to append to it, or creates it. A thread of its own writes the lines.
    ///
    /// # Errors
    /// A file that cannot be written, and a thread that cannot be started.
    pub fn open(file: &Path, options: AuditOptions) -> Result<Self, AuditError> {
        let failed = |error| AuditError { file: file.to_owned(), error };
        let opened = open(file).map_err(failed)?;
        let (queue, lines) = sync_channel(QUEUE);
        let (end, ended) = sync_channel(0);
        let limit = LineLimit { since: Instant::now(), lines: 0, max: options.max_lines_per_second };
        let suppressed = Arc::new(AtomicU64::new(0));
        let writer = AuditWriter {
            path: file.to_owned(),
            file: Some(opened),
            options,
            failed_at: None,
            suppressed: Arc::clone(&suppressed),
        };
        let run = move || {
            writer.run(&lines);
            drop(end);
        };
        thread::Builder::new().name("spandrel-audit".into()).spawn(run).map_err(failed)?;
        Ok(Self { queue: Some(queue), limit: Mutex::new(limit), suppressed, ended: Mutex::new(ended) })
    }

    /// Writes a decision about a request of this peer.
    pub(crate) fn record<'r>(&self, peer: &'r ReceivedCredentials, object: Option<&[u8]>, mut record: AuditRecord<'r>) {
        if !self.limit.lock().admits(Instant::now()) {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let identity = peer.identity();
        record.time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        record.address = peer.address().to_string();
        record.cn = identity.common_name.as_deref();
        record.issuer = identity.issuer.as_deref();
        record.uid = identity.user_id;
        record.token = identity.token_name.as_deref();
        record.object = object.map(|key| {
            let text = describe_key(key).unwrap_or_else(|| key.escape_ascii().to_string());
            shortened(&text).to_owned()
        });
        record.operation = record.operation.map(shortened);
        record.path = record.path.map(shortened);
        record.suppressed = self.suppressed.swap(0, Ordering::Relaxed);
        let suppressed = record.suppressed;
        let is_taken = serde_json::to_string(&record).is_ok_and(|mut line| {
            line.push('\n');
            self.queue.as_ref().is_some_and(|queue| queue.try_send(line).is_ok())
        });
        if !is_taken {
            self.suppressed.fetch_add(suppressed + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for AuditLog {
    /// Waits until the last lines are written, five seconds at most.
    fn drop(&mut self) {
        self.queue = None;
        if let Err(RecvTimeoutError::Timeout) = self.ended.lock().recv_timeout(CLOSE_TIMEOUT) {
            tracing::error!("the end of the audit log was not written in time");
        }
    }
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(MAX_TEXT).map_or(text, |(end, _)| &text[..end])
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    let file = options.open(path)?;
    let octets = file.metadata()?.len();
    Ok((file, octets))
}

/// The thread's side of the log.
struct AuditWriter {
    path: PathBuf,
    /// The open file and its size.
    file: Option<(File, u64)>,
    options: AuditOptions,
    /// The time of the last failure, while the file cannot be written.
    failed_at: Option<Instant>,
    suppressed: Arc<AtomicU64>,
}

impl AuditWriter {
    fn run(mut self, lines: &Receiver<String>) {
        while let Ok(mut batch) = lines.recv() {
            let mut count = 1;
            while batch.len() < BATCH
                && let Ok(line) = lines.try_recv()
            {
                batch.push_str(&line);
                count += 1;
            }
            if self.failed_at.is_some_and(|failed_at| failed_at.elapsed() < RETRY) {
                self.suppressed.fetch_add(count, Ordering::Relaxed);
                continue;
            }
            match self.write(batch.as_bytes()) {
                Ok(()) => {
                    if self.failed_at.take().is_some() {
                        tracing::warn!(file = %self.path.display(), "the audit log is written again");
                    }
                }
                Err(error) => {
                    self.suppressed.fetch_add(count, Ordering::Relaxed);
                    self.file = None;
                    if self.failed_at.replace(Instant::now()).is_none() {
                        tracing::error!(
                            file = %self.path.display(), %error,
                            "cannot write the audit log: decisions are not recorded until the file can be written"
                        );
                    }
                }
            }
        }
    }

    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|(_, octets)| *octets >= self.options.max_octets) {
            self.file = None;
            self.rotate()?;
        }
        let (file, octets) = match &mut self.file {
            Some(opened) => opened,
            None => self.file.insert(open(&self.path)?),
        };
        file.write_all(batch)?;
        *octets += batch.len() as u64;
        Ok(())
    }

    /// Renames the file to `FILE.1`, that to `FILE.2`, and so on; the oldest is replaced.
    fn rotate(&self) -> io::Result<()> {
        let name = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        if self.options.kept_files == 0 {
            return std::fs::remove_file(&self.path);
        }
        for number in (1..self.options.kept_files).rev() {
            match std::fs::rename(name(number), name(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, name(1))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc::channel};

    use spandrel_test_support::wait_until;
    use spandrel_transport::Address;

    use super::*;
    use crate::Identity;

    fn peer() -> ReceivedCredentials {
        let identity = Identity {
            common_name: Some("teller".to_owned()),
            issuer: Some("Bank CA".to_owned()),
            user_id: Some(7),
            token_name: Some("tester".to_owned()),
            ..Identity::default()
        };
        ReceivedCredentials::of_caller(Address::new("http", "10.0.0.1:1"), identity)
    }

    fn record(operation: &str) -> AuditRecord<'_> {
        AuditRecord { decision: "deny", operation: Some(operation), ..AuditRecord::default() }
    }

    fn json(text: &str) -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The writer of a log that keeps so many files of so many octets.
    fn writer(path: &Path, max_octets: u64, kept_files: u32) -> AuditWriter {
        let options = AuditOptions { max_octets, kept_files, ..AuditOptions::default() };
        AuditWriter { path: path.to_owned(), file: None, options, failed_at: None, suppressed: Arc::default() }
    }

    #[test]
    fn the_default_limits_are_those_of_the_documentation() {
        let AuditOptions { max_octets, kept_files, max_lines_per_second } = AuditOptions::default();
        assert_eq!((max_octets, kept_files, max_lines_per_second), (67_108_864, 5, 1000));
    }

    #[test]
    fn a_closed_log_has_all_lines_with_the_names_of_the_peer() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let log = AuditLog::open(&file, AuditOptions::default()).unwrap();
        let long = "\u{fc}".repeat(MAX_TEXT + 1);
        log.record(&peer(), Some(b"front\n"), AuditRecord { path: Some(&long), ..record(&long) });
        for _ in 0..500 {
            log.record(&peer(), None, record("open"));
        }
        drop(log);
        let lines = json(&fs::read_to_string(&file).unwrap());
        assert_eq!(lines.len(), 501);
        let first = &lines[0];
        for (field, expected) in
            [("address", "http://10.0.0.1:1"), ("cn", "teller"), ("issuer", "Bank CA"), ("token", "tester")]
        {
            assert_eq!(first[field], expected, "{field}");
        }
        assert_eq!((&first["uid"], &first["object"]), (&7.into(), &"front\\n".into()));
        let shortened = "\u{fc}".repeat(MAX_TEXT);
        assert_eq!((&first["operation"], &first["path"]), (&shortened.as_str().into(), &shortened.as_str().into()));
        assert!(first.get("suppressed").is_none() && first.get("rule").is_none());
    }

    #[test]
    fn a_text_is_shortened_only_above_the_limit() {
        for (length, expected) in [(0, 0), (MAX_TEXT, MAX_TEXT), (MAX_TEXT + 1, MAX_TEXT)] {
            assert_eq!(shortened(&"\u{20ac}".repeat(length)).chars().count(), expected);
        }
    }

    #[test]
    fn a_second_has_so_many_lines_and_the_next_one_as_many() {
        let since = Instant::now();
        let mut limit = LineLimit { since, lines: 0, max: 2 };
        let mut admitted = |milliseconds| limit.admits(since + Duration::from_millis(milliseconds));
        assert_eq!([0, 500, 999].map(&mut admitted), [true, true, false]);
        assert_eq!([1000, 1001, 1999].map(&mut admitted), [true, true, false]);
        assert_eq!([2000, 9000, 9001].map(&mut admitted), [true; 3]);
    }

    #[test]
    fn the_next_line_has_the_number_of_those_above_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let log = AuditLog::open(&file, AuditOptions { max_lines_per_second: 1, ..AuditOptions::default() }).unwrap();
        // A second that is not over before the end of the test.
        log.limit.lock().since = Instant::now() + Duration::from_secs(3600);
        for _ in 0..4 {
            log.record(&peer(), None, record("open"));
        }
        log.limit.lock().lines = 0;
        log.record(&peer(), None, record("close"));
        assert_eq!(log.suppressed.load(Ordering::Relaxed), 0);
        drop(log);
        let lines = json(&fs::read_to_string(&file).unwrap());
        let parts = |line: &serde_json::Value| (line["operation"].to_string(), line["suppressed"].to_string());
        let expected = [("\"open\"", "null"), ("\"close\"", "3")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(lines.iter().map(parts).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_without_room_is_counted_with_those_before_it() {
        let (queue, _waiting) = sync_channel(1);
        let (_end, ended) = sync_channel::<()>(0);
        let limit = LineLimit { since: Instant::now(), lines: 0, max: 1000 };
        let mut log = AuditLog {
            queue: Some(queue),
            limit: Mutex::new(limit),
            suppressed: Arc::new(AtomicU64::new(5)),
            ended: Mutex::new(ended),
        };
        let suppressed = Arc::clone(&log.suppressed);
        log.record(&peer(), None, record("open"));
        assert_eq!(suppressed.load(Ordering::Relaxed), 0, "the line has the number");
        suppressed.store(5, Ordering::Relaxed);
        log.record(&peer(), None, record("open"));
        assert_eq!(suppressed.load(Ordering::Relaxed), 6);
        log.queue = None; // closed
        log.record(&peer(), None, record("open"));
        assert_eq!(suppressed.load(Ordering::Relaxed), 7);
        drop(_end);
    }

    #[test]
    fn full_files_are_renamed_and_so_many_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut writer = writer(&path, 10, 2);
        for text in ["first56789", "second7", "890", "third67890", "fourth7890", "fifth"] {
            writer.write(text.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        assert_eq!(read("audit.log").as_deref(), Some("fifth"));
        assert_eq!(read("audit.log.1").as_deref(), Some("fourth7890"));
        assert_eq!(read("audit.log.2").as_deref(), Some("third67890"));
        assert_eq!(read("audit.log.3"), None);
    }

    #[test]
    fn a_full_file_is_removed_if_none_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut writer = writer(&path, 5, 0);
        writer.write(b"first").unwrap();
        writer.write(b"next").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "next");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_size_of_a_file_that_existed_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "before").unwrap();
        let mut writer = writer(&path, 6, 1);
        writer.write(b"one").unwrap(); // opened now
        writer.write(b"two").unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("audit.log.1"), read("audit.log")), ("beforeone".to_owned(), "two".to_owned()));
    }

    #[test]
    fn a_file_that_cannot_be_renamed_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        // A folder that is not empty stands in the place of the file.
        fs::create_dir_all(folder.path().join("audit.log.2/full")).unwrap();
        fs::write(folder.path().join("audit.log.1"), "older").unwrap();
        let mut writer = writer(&path, 1, 2);
        writer.write(b"first").unwrap();
        writer.write(b"next").unwrap_err();
        assert_eq!(fs::read_to_string(folder.path().join("audit.log.1")).unwrap(), "older");
    }

    #[test]
    #[cfg(unix)]
    fn others_cannot_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        drop(AuditLog::open(&path, AuditOptions::default()).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o007, 0);
    }

    #[test]
    fn lines_that_wait_together_are_written_at_once_up_to_64_kib() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (lines, waiting) = channel();
        for nth in 0..3 {
            lines.send(nth.to_string().repeat(32_768)).unwrap();
        }
        drop(lines);
        // Each writing begins a new file.
        writer(&path, 1, 5).run(&waiting);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("audit.log.1"), ["0".repeat(32_768), "1".repeat(32_768)].concat());
        assert_eq!(read("audit.log"), "2".repeat(32_768));
    }

    #[test]
    fn each_line_of_a_batch_that_could_not_be_written_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, waiting) = channel();
        for _ in 0..3 {
            lines.send("lost\n".to_owned()).unwrap();
        }
        drop(lines);
        let writer = writer(&folder.path().join("absent/audit.log"), 1 << 20, 1);
        let suppressed = Arc::clone(&writer.suppressed);
        writer.run(&waiting);
        assert_eq!(suppressed.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_file_that_failed_is_left_alone_for_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (lines, waiting) = channel();
        lines.send("lost\n".to_owned()).unwrap();
        drop(lines);
        // The failure is as recent as long as this test lasts.
        let failed_at = Some(Instant::now() + Duration::from_secs(3600));
        let writer = AuditWriter { failed_at, ..writer(&path, 1 << 20, 1) };
        let suppressed = Arc::clone(&writer.suppressed);
        writer.run(&waiting);
        assert_eq!((suppressed.load(Ordering::Relaxed), path.exists()), (1, false));
    }

    #[test]
    fn lines_are_lost_and_counted_until_the_file_can_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent/audit.log");
        let (lines, waiting) = channel();
        let writer = writer(&path, 1 << 20, 1);
        let suppressed = Arc::clone(&writer.suppressed);
        let thread = std::thread::spawn(move || writer.run(&waiting));
        let lost = |count: u64| wait_until("the count", || suppressed.load(Ordering::Relaxed) == count);
        for count in 1..4 {
            lines.send("lost\n".to_owned()).unwrap();
            lost(count);
        }
        fs::create_dir(path.parent().unwrap()).unwrap();
        // It is tried again after a second.
        wait_until("the file", || {
            lines.send("line\n".to_owned()).unwrap();
            path.exists()
        });
        let before = suppressed.load(Ordering::Relaxed);
        lines.send("last\n".to_owned()).unwrap();
        drop(lines);
        thread.join().unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("line\nlast\n"));
        assert_eq!(suppressed.load(Ordering::Relaxed), before);
    }
}
