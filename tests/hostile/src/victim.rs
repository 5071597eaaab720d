//! The server's process.

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
use spandrel::{IiopProfile, Orb};

use crate::attacked::Target;

/// Longer than anything takes that is not stuck.
pub const LONG: Duration = Duration::from_secs(30);

/// A server in a process of its own.
pub struct Victim {
    process: Child,
    /// Its log, line by line.
    log: Arc<Mutex<Vec<String>>>,
    started: Instant,
    pub reference: String,
    pub profile: IiopProfile,
}

/// The program of a server: beside this one, or one folder above, where tests lie.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folders = here.ancestors().skip(1).take(2);
    let name = format!("hostile-victim{}", std::env::consts::EXE_SUFFIX);
    let found = folders.map(|folder| folder.join(&name)).find(|program| program.is_file());
    found.context("hostile-victim is not built: `cargo build -p spandrel-hostile`")
}

impl Victim {
    /// Starts a server whose ORB has these options.
    pub fn start(options: &[&str]) -> Result<Self> {
        let mut command = Command::new(program()?);
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("SPANDREL_LOG").env_remove("SPANDREL_LOG_FORMAT");
        let mut process = command.spawn()?;
        let (log, stderr) = (Arc::<Mutex<Vec<String>>>::default(), process.stderr.take().context("it is piped")?);
        let logged = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                logged.lock().unwrap().push(line);
            }
        });
        let mut reference = String::new();
        BufReader::new(process.stdout.take().context("it is piped")?).read_line(&mut reference)?;
        let reference = reference.trim().to_owned();
        let ior = spandrel_giop::ior_from_string(&reference)?;
        let profile = IiopProfile::decode(&ior.profiles[0])?.context("a server listens by TCP")?;
        Ok(Self { process, log, started: Instant::now(), reference, profile })
    }

    pub fn addr(&self) -> Result<SocketAddr> {
        Ok(SocketAddr::new(self.profile.host.parse()?, self.profile.port))
    }

    /// A connection that does as it likes; nothing on it takes for ever.
    pub fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.addr()?, LONG)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONG))?;
        stream.set_write_timeout(Some(LONG))?;
        Ok(stream)
    }

    /// The object, as a client with an ORB of its own sees it.
    pub fn target(&self) -> Result<(Orb, Target)> {
        let orb = Orb::builder().request_timeout(Some(LONG)).build()?;
        let target = Target::unchecked_narrow(&orb.string_to_object(&self.reference)?);
        Ok((orb, target))
    }

    fn status(&self, name: &str) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>()?)
    }

    /// KiB that it has in memory now.
    pub fn resident(&self) -> Result<u64> {
        self.status("VmRSS")
    }

    /// KiB that it had at most since [`forget_peak`](Self::forget_peak).
    pub fn peak(&self) -> Result<u64> {
        self.status("VmHWM")
    }

    /// Begins anew to note the most that it has.
    pub fn forget_peak(&self) -> Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.process.id()), "5")?)
    }

    pub fn threads(&self) -> Result<u64> {
        self.status("Threads")
    }

    pub fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count())
    }

    /// Makes sure that it has logged no more than ten lines of a cause in a minute, by what each says last.
    pub fn check_log(&self) -> Result<()> {
        let minutes = 1 + self.started.elapsed().as_secs() / 60;
        let mut causes = HashMap::<String, u64>::new();
        for line in &*self.log.lock().unwrap() {
            // Numbers, which tell one line of a cause from another, aside.
            let words = line.split_whitespace().skip(1);
            let words = words.filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
            *causes.entry(words.collect::<Vec<_>>().join(" ")).or_default() += 1;
        }
        let most = causes.iter().max_by_key(|(_, lines)| **lines);
        ensure!(most.is_none_or(|(_, lines)| *lines <= 10 * minutes), "logged too often: {most:?}");
        Ok(())
    }

    /// Makes sure that it still runs.
    pub fn check_alive(&mut self) -> Result<()> {
        let ended = self.process.try_wait()?;
        ensure!(ended.is_none(), "the server has ended: {ended:?}");
        Ok(())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
