//! The process of the attacked server.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spandrel::{Orb, types::IiopProfile};

use crate::attacked::Target;

/// A timeout that only a hanging operation exceeds.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A server in its own process.
pub struct AttackedServer {
    process: Child,
    /// The lines of its log.
    log: Arc<Mutex<Vec<String>>>,
    started: Instant,
    pub reference: String,
    pub profile: IiopProfile,
}

/// The path of the server program: the folder of this program or, for tests, its parent folder.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folders = here.ancestors().skip(1).take(2);
    let name = format!("hostile-server{}", std::env::consts::EXE_SUFFIX);
    let found = folders.map(|folder| folder.join(&name)).find(|program| program.is_file());
    found.context("hostile-server is not built: `cargo build -p spandrel-hostile`")
}

impl AttackedServer {
    /// Starts a server whose ORB has these options.
    pub fn start(options: &[&str]) -> Result<Self> {
        let mut command = Command::new(program()?);
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("SPANDREL_LOG").env_remove("SPANDREL_LOG_FORMAT");
        let mut process = command.spawn()?;
        let (log, stderr) =
            (Arc::<Mutex<Vec<String>>>::default(), process.stderr.take().context("the stream is piped")?);
        let reader_log = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                reader_log.lock().unwrap().push(line);
            }
        });
        let mut reference = String::new();
        BufReader::new(process.stdout.take().context("the stream is piped")?).read_line(&mut reference)?;
        let reference = reference.trim().to_owned();
        let ior = spandrel_giop::ior_from_string(&reference)?;
        let profile = IiopProfile::decode(&ior.profiles[0])?.context("the server has no IIOP profile")?;
        Ok(Self { process, log, started: Instant::now(), reference, profile })
    }

    pub fn addr(&self) -> Result<SocketAddr> {
        Ok(SocketAddr::new(self.profile.host.parse()?, self.profile.port))
    }

    /// A raw connection with read and write timeouts.
    pub fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.addr()?, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// The object, in a new ORB.
    pub fn target(&self) -> Result<(Orb, Target)> {
        let orb = Orb::builder().request_timeout(Some(TIMEOUT)).build()?;
        let target = Target::unchecked_narrow(&orb.string_to_object(&self.reference)?);
        Ok((orb, target))
    }

    fn status(&self, name: &str) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>()?)
    }

    /// Its resident memory, in KiB.
    pub fn resident(&self) -> Result<u64> {
        self.status("VmRSS")
    }

    /// The peak of its resident memory since [`reset_peak`](Self::reset_peak), in KiB.
    pub fn peak(&self) -> Result<u64> {
        self.status("VmHWM")
    }

    /// Resets the peak to the current value.
    pub fn reset_peak(&self) -> Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.process.id()), "5")?)
    }

    pub fn threads(&self) -> Result<u64> {
        self.status("Threads")
    }

    pub fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count())
    }

    /// The lines of its log so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Fails if it logged more than ten lines of one cause per minute, with lines grouped by their text.
    pub fn check_log(&self) -> Result<()> {
        let minutes = 1 + self.started.elapsed().as_secs() / 60;
        let mut causes = HashMap::<String, u64>::new();
        for line in &*self.log.lock().unwrap() {
            // Numbers are ignored: they differ between lines of one cause.
            let words = line.split_whitespace().skip(1);
            let words = words.filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
            *causes.entry(words.collect::<Vec<_>>().join(" ")).or_default() += 1;
        }
        let worst = causes.iter().max_by_key(|(_, lines)| **lines);
        ensure!(worst.is_none_or(|(_, lines)| *lines <= 10 * minutes), "logged too often: {worst:?}");
        Ok(())
    }

    /// Fails if the process has exited.
    pub fn check_alive(&mut self) -> Result<()> {
        let exit_status = self.process.try_wait()?;
        ensure!(exit_status.is_none(), "the server has exited: {exit_status:?}");
        Ok(())
    }
}

impl Drop for AttackedServer {
    fn drop(&mut self) {
        // Both fail only if the process has exited.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
