//! Images by three mechanisms (paper 000, section 6): as `sequence<octet>` in replies, by plain sockets with `sendfile`, and
//! by the image store, whose calls signal while bulk streams carry the files.
//!
//! The server and the clients are processes of their own, on the loopback device or at both ends of a link. A round has
//! each mechanism in turn. The processor time is that of both processes.

mod parties;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, bail};
use spandrel_error::output;
use spandrel_lab::peer::child::ChildHandle;
use spandrel_measure::table::{self, Align};
use spandrel_orchestra::agent::processor_times;

pub(crate) use self::parties::{ClientArgs, ServerArgs};
use self::parties::{ClientOutcome, Mechanism, ServedImages};
use crate::links::{LinkedNamespaces, SENDER};
use crate::point::Link;

/// The longest start of a process, with the uploads of a server.
const START: Duration = Duration::from_secs(120);
/// The longest round of one mechanism.
const ROUND: Duration = Duration::from_secs(300);
/// The megabytes that a round on the loopback device transfers, at least.
const LOOPBACK_MEGABYTES: u32 = 320;
/// The megabytes of the images of which the octets in user space are counted.
const COUNTED: u32 = 10;
/// The system calls by which octets go from user space.
const SENDING: [&str; 5] = ["sendto", "sendmsg", "write", "writev", "pwrite64"];
/// The system calls by which octets come to user space.
const RECEIVING: [&str; 4] = ["read", "pread64", "readv", "recvfrom"];

/// Transfer images in replies, by bulk streams, and by plain sockets with sendfile.
#[derive(Debug, clap::Args)]
pub(crate) struct ImagingArgs {
    /// The sizes of the images, in MB
    #[arg(long, value_name = "MB", value_delimiter = ',', default_values_t = [1, 10, 40], value_parser = clap::value_parser!(u32).range(1..=60))]
    sizes: Vec<u32>,
    /// The numbers of clients at once
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8], value_parser = clap::value_parser!(u32).range(1..=16))]
    clients: Vec<u32>,
    /// The link between both processes: loopback, atm (155 Mbit/s, MTU 9,180; needs root, ip and tc), or both in turn
    #[arg(long, value_name = "LINK", value_delimiter = ',', default_values = ["loopback", "atm"], value_parser = parse_link)]
    link: Vec<Link>,
    /// The rounds of each point, of which the medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Count the octets that pass user space in the server, with strace, and measure no times
    #[arg(long)]
    count: bool,
    /// One size, two clients, one round: shows that everything runs
    #[arg(long)]
    short: bool,
}

fn parse_link(text: &str) -> Result<Link, String> {
    let links = [Link::Loopback, Link::Atm];
    links.into_iter().find(|link| link.name() == text).ok_or_else(|| "expected loopback or atm".to_owned())
}

/// One round of a mechanism.
#[derive(Clone, Copy)]
struct Sample {
    megabits_per_second: f64,
    /// Milliseconds of both processes for each image.
    processor: f64,
}

impl ImagingArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        if self.count {
            return count();
        }
        let (sizes, clients, rounds) =
            if self.short { (&[1][..], &[2][..], 1) } else { (&self.sizes[..], &self.clients[..], self.rounds) };
        use Align::{Left, Right};
        let columns = [
            ("link", Left),
            ("MB", Right),
            ("clients", Right),
            ("mechanism", Left),
            ("Mbit/s", Right),
            ("of plain", Right),
            ("CPU ms/image", Right),
            ("of plain", Right),
        ];
        let mut table = table::with_columns(&columns);
        for link in &self.link {
            let folder = tempfile::tempdir().context("cannot make a folder for images")?;
            let experiment = Experiment::start(*link, folder.path(), sizes)?;
            for (size, clients) in sizes.iter().flat_map(|size| clients.iter().map(move |clients| (*size, *clients))) {
                output::remark(&format!("{}: {size} MB, {clients} at once\n", link.name()));
                let mut samples = BTreeMap::<Mechanism, Vec<Sample>>::new();
                for _ in 0..rounds {
                    for mechanism in Mechanism::ALL {
                        samples.entry(mechanism).or_default().push(experiment.round(mechanism, size, clients)?);
                    }
                }
                let median_of = |mechanism, value: fn(&Sample) -> f64| median(samples[&mechanism].iter().map(value));
                for mechanism in Mechanism::ALL {
                    let [speed, processor] = [|it: &Sample| it.megabits_per_second, |it: &Sample| it.processor];
                    table.add_row([
                        link.name().to_owned(),
                        size.to_string(),
                        clients.to_string(),
                        mechanism.name().to_owned(),
                        format!("{:.0}", median_of(mechanism, speed)),
                        ratio(median_of(mechanism, speed), median_of(Mechanism::Plain, speed)),
                        format!("{:.2}", median_of(mechanism, processor)),
                        ratio(median_of(mechanism, processor), median_of(Mechanism::Plain, processor)),
                    ]);
                }
            }
        }
        output::print(&format!("{table}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A ratio to a base; none to one that is too small for the clock.
fn ratio(value: f64, base: f64) -> String {
    if base > 0.0 { format!("{:.2}", value / base) } else { "-".to_owned() }
}

/// A server with images, and the link to its clients.
struct Experiment {
    link: Link,
    server: ChildHandle,
    images: ServedImages,
    /// Removed after the processes have ended.
    _namespaces: Option<LinkedNamespaces>,
}

impl Experiment {
    fn start(link: Link, folder: &Path, sizes: &[u32]) -> anyhow::Result<Self> {
        let namespaces = LinkedNamespaces::create(link)?;
        let ip = if namespaces.is_some() { SENDER.1 } else { "127.0.0.1" };
        let command = server_command(folder, ip, sizes)?;
        let command = if namespaces.is_some() { LinkedNamespaces::at_sender(&command) } else { command };
        let mut server = ChildHandle::start("server", command)?;
        let images = served_images(&mut server)?;
        Ok(Self { link, server, images, _namespaces: namespaces })
    }

    fn round(&self, mechanism: Mechanism, size: u32, clients: u32) -> anyhow::Result<Sample> {
        let transfers = match self.link {
            Link::Loopback => (LOOPBACK_MEGABYTES / (size * clients)).max(1),
            _ => 1,
        };
        let command = client_command(&self.images, mechanism, size, clients, transfers)?;
        let command = if self.link == Link::Loopback { command } else { LinkedNamespaces::at_receiver(&command) };
        let mut client = ChildHandle::start("client", command)?;
        expect_ready(&mut client)?;
        let both = |client: &ChildHandle| -> f64 {
            let times = [processor_times(self.server.id()), processor_times(client.id())];
            times.iter().map(|(user, system)| user + system).sum()
        };
        let before = both(&client);
        let outcome = run_client(&mut client)?;
        let images = f64::from(clients * transfers);
        let processor = (both(&client) - before) * 1_000.0 / images;
        Ok(Sample { megabits_per_second: outcome.octets as f64 * 8.0 / outcome.seconds / 1e6, processor })
    }
}

fn server_command(folder: &Path, ip: &str, sizes: &[u32]) -> anyhow::Result<Command> {
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let mut command = Command::new(env::current_exe()?);
    command.arg("imaging-server").arg(folder).args([ip, &sizes.join(",")]);
    Ok(command)
}

fn client_command(
    images: &ServedImages,
    mechanism: Mechanism,
    size: u32,
    clients: u32,
    transfers: u32,
) -> anyhow::Result<Command> {
    let image = images.numbers.get(&size).context("the server has no image of this size")?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["imaging-client", mechanism.name(), images.target(mechanism)]);
    command.args([image.to_string(), clients.to_string(), transfers.to_string()]);
    Ok(command)
}

fn served_images(server: &mut ChildHandle) -> anyhow::Result<ServedImages> {
    let line = server.line(START)?;
    serde_json::from_str(&line).with_context(|| format!("the server says {line}"))
}

fn expect_ready(client: &mut ChildHandle) -> anyhow::Result<()> {
    let line = client.line(START)?;
    if line == "ready" { Ok(()) } else { bail!("the client says {line}") }
}

/// Makes a client that is ready transfer its images.
fn run_client(client: &mut ChildHandle) -> anyhow::Result<ClientOutcome> {
    client.send_line("go")?;
    let line = client.line(ROUND)?;
    serde_json::from_str(&line).with_context(|| format!("the client says {line}"))
}

/// Counts the octets of one transfer in the system calls of a server, by mechanism.
fn count() -> anyhow::Result<ExitCode> {
    use Align::{Left, Right};
    let columns = [
        ("mechanism", Left),
        ("octets of the file", Right),
        ("by sendfile", Right),
        ("sent from user space", Right),
        ("read to user space", Right),
    ];
    let mut table = table::with_columns(&columns);
    let folder = tempfile::tempdir().context("cannot make a folder for images")?;
    let sizes = [COUNTED];
    // The images are there before the server is traced.
    drop(Experiment::start(Link::Loopback, folder.path(), &sizes)?);
    for mechanism in Mechanism::ALL {
        let log = folder.path().join(format!("{}.strace", mechanism.name()));
        let inner = server_command(folder.path(), "127.0.0.1", &sizes)?;
        let mut command = Command::new("strace");
        let calls = [&["sendfile"][..], &SENDING, &RECEIVING].concat().join(",");
        command.args(["-f", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
        command.arg(inner.get_program()).args(inner.get_args());
        let mut server = ChildHandle::start("server under strace", command)?;
        let images = served_images(&mut server)?;
        let read = |calls: &[&str]| -> anyhow::Result<u64> {
            let text = fs::read_to_string(&log).context("cannot read the log of strace")?;
            Ok(calls.iter().map(|call| octets_of(&text, call)).sum())
        };
        let before = [read(&["sendfile"])?, read(&SENDING)?, read(&RECEIVING)?];
        let mut client = ChildHandle::start("client", client_command(&images, mechanism, COUNTED, 1, 1)?)?;
        expect_ready(&mut client)?;
        let octets = run_client(&mut client)?.octets;
        drop((client, server)); // it writes the rest of its log
        let after = [read(&["sendfile"])?, read(&SENDING)?, read(&RECEIVING)?];
        let [sendfile, sent, received] = [0, 1, 2].map(|nth: usize| (after[nth] - before[nth]).to_string());
        // A first transfer warms the caches up.
        table.add_row([mechanism.name().to_owned(), (2 * octets).to_string(), sendfile, sent, received]);
    }
    output::print(&format!("{table}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The sum of the results of a system call in a log of strace.
fn octets_of(log: &str, call: &str) -> u64 {
    let (whole, resumed) = (format!(" {call}("), format!("<... {call} resumed"));
    let lines = log.lines().filter(|line| line.contains(&whole) || line.contains(&resumed));
    lines.filter_map(|line| line.rsplit_once("= ")?.1.split(' ').next()?.parse::<u64>().ok()).sum()
}
