//! The naming service beside omniNames, in interleaved rounds: `cargo bench -p spandrel-naming [ROUNDS]`.
//! With the argument `durable` only binds that are written to the disk are measured, beside a plain file.
//!
//! Both are called by the same client. The processor time is that of the server's process, read from `/proc`.
//! omniNames writes its log without synchronization.
//!
//! A server without an ORB ([`serve_bare`]) takes the processor time of two system calls for each request in a thread of its
//! connection. The naming service sends the replies to several connections by one.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use spandrel::cdr::{ByteOrder, OctetForm, to_octets};
use spandrel::services::cos_naming::{NameComponent, NamingContextExt};
use spandrel::types::{IiopProfile, ior_to_string};
use spandrel::{ObjectRef, Orb};
use spandrel_measure::stats::Summary;
use spandrel_test_support::free_port;

const CLIENTS: usize = 64;

/// A server's process and address.
struct Server {
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Server {
    fn own(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-naming"));
        command.arg("--data").arg(folder).args(["--listen", "iiop://127.0.0.1:0"]).args(arguments);
        let mut process = command.stdout(Stdio::piped()).spawn().context("cannot start spandrel-naming")?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        let port = line.trim().trim_end_matches("/NameService").rsplit(':').next().and_then(|port| port.parse().ok());
        Ok(Self { process, port: port.with_context(|| format!("no port in {line:?}"))? })
    }

    fn bare() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("no executable")?);
        let mut process = command.arg(BARE).stdout(Stdio::piped()).spawn().context("cannot start a bare server")?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        Ok(Self { process, port: line.trim().parse().with_context(|| format!("no port in {line:?}"))? })
    }

    fn omni_names(folder: &Path, orb: &Orb) -> Result<Self> {
        let port = free_port();
        let mut command = Command::new("omniNames");
        command.args(["-start", &port.to_string(), "-always", "-datadir"]).arg(folder);
        command.args(["-ORBendPointPublish", "giop:tcp:127.0.0.1:"]).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().context("cannot start omniNames (package omniorb-nameserver)")?;
        let server = Self { process, port };
        let deadline = Instant::now() + Duration::from_secs(10);
        while server.root(orb)?.as_object().non_existent().unwrap_or(true) {
            if Instant::now() > deadline {
                bail!("omniNames did not answer within 10 s");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn root(&self, orb: &Orb) -> Result<NamingContextExt> {
        let object = orb.string_to_object(&format!("corbaloc::1.2@127.0.0.1:{}/NameService", self.port))?;
        Ok(NamingContextExt::unchecked_narrow(&object))
    }

    /// The processor time of the process.
    fn cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().context("no fields")?.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Duration::from_millis(ticks * 10)) // 100 ticks a second on Linux
    }
}

/// The argument that chooses the rows of durable binds.
const DURABLE: &str = "durable";

/// The argument of the process that runs [`serve_bare`].
const BARE: &str = "--bare";

/// Answers each request with the reply of `resolve`, by one read and one write in a thread of its connection. Prints its
/// port, and never ends.
fn serve_bare() -> Result<()> {
    let orb = Orb::builder().build()?;
    let object = orb.string_to_object("corbaloc::127.0.0.1:9/object")?;
    let body = to_octets(object.ior(), &OctetForm::bare(ByteOrder::Little))?;
    // GIOP 1.2: header, request id, status NO_EXCEPTION, no contexts; the body is at a multiple of eight already.
    let mut reply = b"GIOP\x01\x02\x01\x01".to_vec();
    reply.extend(u32::try_from(12 + body.len())?.to_le_bytes());
    reply.extend([0; 12]);
    reply.extend(body);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let (mut stream, mut reply) = (stream?, reply.clone());
        stream.set_nodelay(true)?;
        thread::spawn(move || -> std::io::Result<()> {
            let mut request = [0; 4096];
            // The requests of this benchmark arrive whole.
            while stream.read(&mut request)? > 0 {
                reply[12..16].copy_from_slice(&request[12..16]);
                stream.write_all(&reply)?;
            }
            Ok(())
        });
    }
    Ok(())
}

fn name(id: &str) -> [NameComponent; 1] {
    [NameComponent { id: id.to_owned(), kind: String::new() }]
}

fn median(samples: Vec<f64>) -> f64 {
    Summary::from_values(samples).expect("there is a sample").median
}

/// The median time of a call, in microseconds.
fn median_time(calls: usize, mut call: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let mut samples = Vec::with_capacity(calls);
    for nth in 0..calls {
        let start = Instant::now();
        call(nth)?;
        samples.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(samples))
}

/// Runs clients of connections of their own at the same time; returns calls a second.
fn together(
    server: &Server,
    calls: usize,
    call: impl Fn(&NamingContextExt, usize, usize) -> Result<()> + Sync,
) -> Result<f64> {
    let mut roots = Vec::new();
    for _ in 0..CLIENTS {
        let orb = Orb::builder().build()?;
        let root = server.root(&orb)?;
        _ = root.as_object().non_existent()?; // it connects
        roots.push((orb, root));
    }
    let start = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = roots
            .iter()
            .enumerate()
            .map(|(client, (_, root))| {
                let call = &call;
                scope.spawn(move || (0..calls).try_for_each(|nth| call(root, client, nth)))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    let rate = (CLIENTS * calls) as f64 / start.elapsed().as_secs_f64();
    for (orb, _) in roots {
        orb.shutdown()?;
    }
    Ok(rate)
}

/// Requests that bind names in one context, as our ORB sends them.
///
/// The names have the same length: each request differs from the first in the octets of its name alone.
struct BindRequests {
    octets: Vec<u8>,
    name_at: usize,
}

impl BindRequests {
    fn record(orb: &Orb, context: &NamingContextExt, object: &ObjectRef) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut ior = context.as_object().ior().clone();
        for tagged in &mut ior.profiles {
            if let Some(mut profile) = IiopProfile::decode(tagged)? {
                profile.port = listener.local_addr()?.port();
                *tagged = profile.encode()?;
            }
        }
        let recorder = NamingContextExt::unchecked_narrow(&orb.string_to_object(&ior_to_string(&ior))?);
        let id = Self::id(0, 0, 0);
        let octets = thread::scope(|scope| {
            let request = scope.spawn(|| -> Result<Vec<u8>> {
                let (mut stream, _) = listener.accept()?;
                let mut octets = vec![0; 12];
                stream.read_exact(&mut octets)?;
                let size = u32::from_le_bytes(octets[8..12].try_into()?);
                octets.resize(12 + size as usize, 0);
                stream.read_exact(&mut octets[12..])?;
                Ok(octets)
            });
            _ = recorder.bind(&name(&id), Some(object)); // nobody answers
            request.join().expect("the recorder panicked")
        })?;
        let name_at = octets.windows(id.len()).position(|window| window == id.as_bytes()).context("no name")?;
        Ok(Self { octets, name_at })
    }

    fn id(round: usize, client: usize, nth: usize) -> String {
        format!("many{round:03}-{client:03}-{nth:03}")
    }

    /// Binds `calls` names by each of [`CLIENTS`] connections, which have one request each on its way. Returns binds a
    /// second.
    ///
    /// One thread sends all requests, because a client for each connection would take more processor time than the
    /// service, on the same processors.
    fn send(&self, server: &Server, round: usize, calls: usize) -> Result<f64> {
        let mut connections = Vec::new();
        for _ in 0..CLIENTS {
            let stream = TcpStream::connect(("127.0.0.1", server.port))?;
            stream.set_nodelay(true)?;
            connections.push(stream);
        }
        let mut request = self.octets.clone();
        let mut reply = [0; 4096];
        let start = Instant::now();
        for nth in 0..=calls {
            for (client, connection) in connections.iter_mut().enumerate() {
                if nth > 0 {
                    let size = connection.read(&mut reply)?;
                    // A GIOP 1.2 reply without a body and with the status NO_EXCEPTION, as the service sends it at once.
                    if size != 24 || reply[7] != 1 || reply[16..20] != [0; 4] {
                        bail!("client {client} was answered {:?}", &reply[..size]);
                    }
                }
                if nth < calls {
                    let id = Self::id(round, client, nth);
                    request[self.name_at..][..id.len()].copy_from_slice(id.as_bytes());
                    connection.write_all(&request)?;
                }
            }
        }
        Ok((CLIENTS * calls) as f64 / start.elapsed().as_secs_f64())
    }
}

/// Binds a tenth of a million names in a context of their own.
fn fill(root: &NamingContextExt, object: &ObjectRef, names: usize) -> Result<NamingContextExt> {
    let context = root.bind_new_context(&name("many"))?.context("no context")?;
    let context = NamingContextExt::unchecked_narrow(context.as_object());
    for nth in 0..names {
        context.bind(&name(&format!("name{nth}")), Some(object))?;
    }
    Ok(context)
}

fn row(title: &str, own: f64, other: f64, unit: &str) {
    println!("{title:<58} {own:>10.1} {other:>10.1} {unit:<12} {:>6.2}", own / other);
}

/// The rates of durable binds, beside those of a plain file.
fn durable(own: &Server, orb: &Orb, object: &ObjectRef, folder: &Path, rounds: usize) -> Result<()> {
    let mut plain = File::create(folder.join("plain"))?;
    let context = own.root(orb)?.bind_new_context(&name("durable"))?.context("no context")?;
    let requests = BindRequests::record(orb, &NamingContextExt::unchecked_narrow(context.as_object()), object)?;
    let (mut one, mut raw, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let root = own.root(orb)?;
        // In small turns, because the speed of a disk changes.
        let (mut bound, mut written) = (Duration::ZERO, Duration::ZERO);
        for turn in 0..20 {
            let start = Instant::now();
            for nth in 0..10 {
                root.bind(&name(&format!("durable{round}-{turn}-{nth}")), Some(object))?;
            }
            bound += start.elapsed();
            let start = Instant::now();
            for _ in 0..10 {
                plain.write_all(&[1; 4096])?;
                plain.sync_data()?;
            }
            written += start.elapsed();
        }
        one.push(200.0 / bound.as_secs_f64());
        raw.push(200.0 / written.as_secs_f64());
        many.push(requests.send(own, round, 200)?);
    }
    let (one, raw, many) = (median(one), median(raw), median(many));
    row("durable binds, one client; other: write and fdatasync", one, raw, "1/s");
    row("durable binds, 64 clients; other: one client", many, one, "1/s");
    row("durable binds, 64 clients; other: write and fdatasync", many, raw, "1/s");
    Ok(())
}

fn main() -> Result<()> {
    if std::env::args().any(|arg| arg == BARE) {
        return serve_bare();
    }
    let rounds: usize = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(5);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?; // on the disk of the target folder, not in memory
    let folder = |name: &str| -> Result<_> {
        let path = folder.path().join(name);
        fs::create_dir(&path)?;
        Ok(path)
    };
    let orb = Orb::builder().build()?;
    let object = orb.string_to_object("corbaloc::127.0.0.1:9/object")?;
    let own = Server::own(&folder("own")?, &[])?;
    println!("{:<58} {:>10} {:>10} {:<12} {:>6}", "", "Spandrel", "other", "", "ratio");
    if std::env::args().any(|arg| arg == DURABLE) {
        return durable(&own, &orb, &object, &folder("plain")?, rounds);
    }
    let unsynced = Server::own(&folder("unsynced")?, &["--sync-interval", "1000"])?;
    let omni = Server::omni_names(&folder("omni")?, &orb)?;

    for server in [&own, &omni] {
        for nth in 0..10 {
            server.root(&orb)?.bind(&name(&format!("ten{nth}")), Some(&object))?;
        }
    }
    let ten: Vec<_> = (0..10).map(|nth| name(&format!("ten{nth}"))).collect();
    let resolve_ten = |root: &NamingContextExt, nth: usize| root.resolve(&ten[nth % 10]).map(drop).map_err(Into::into);
    let (roots, mut times) = ([own.root(&orb)?, omni.root(&orb)?], [Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        for (root, times) in roots.iter().zip(&mut times) {
            times.push(median_time(4_000, |nth| resolve_ten(root, nth))?);
        }
    }
    let [first, second] = times.map(median);
    row("resolve, one client, ten names", first, second, "us");
    let small = first;

    let bare = Server::bare()?;
    let mut costs = [const { Vec::new() }; 3];
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (nth, server) in [&own, &omni, &bare].into_iter().enumerate() {
            let before = server.cpu()?;
            rates[nth].push(together(server, 1_000, |root, _, nth| resolve_ten(root, nth))?);
            costs[nth].push((server.cpu()? - before).as_secs_f64() * 1e6 / (CLIENTS * 1_000) as f64);
        }
    }
    let [first, second, bare_cost] = costs.map(median);
    row("resolve, 64 connections: processor time of the server", first, second, "us a call");
    row("the same of a server without an ORB; other: omniNames", bare_cost, second, "us a call");
    let [first, second, bare_rate] = rates.map(median);
    row("resolve, 64 connections: rate", first, second, "calls/s");
    row("the same of a server without an ORB; other: omniNames", bare_rate, second, "calls/s");

    let (roots, mut times) = ([unsynced.root(&orb)?, omni.root(&orb)?], [Vec::new(), Vec::new()]);
    for round in 0..rounds {
        for (root, times) in roots.iter().zip(&mut times) {
            let bind = |nth| Ok(root.bind(&name(&format!("bind{round}-{nth}")), Some(&object))?);
            times.push(median_time(1_000, bind)?);
        }
        for root in &roots {
            for nth in 0..1_000 {
                root.unbind(&name(&format!("bind{round}-{nth}")))?;
            }
        }
    }
    let [first, second] = times.map(median);
    row("bind without synchronization, one client", first, second, "us");

    durable(&own, &orb, &object, &folder("plain")?, rounds)?;

    let names = 100_000;
    let full = Server::own(&folder("full")?, &["--sync-interval", "1000"])?;
    let many = fill(&full.root(&orb)?, &object, names)?;
    let resolve = |context: &NamingContextExt, nth: usize| {
        let nth = nth.wrapping_mul(7_919) % names;
        context.resolve(&name(&format!("name{nth}")))?;
        Ok(())
    };
    let large = median_time(4_000, |nth| resolve(&many, nth))?;
    row("resolve, 100,000 names; other: ten names", large, small, "us");
    let start = Instant::now();
    let context = fill(&omni.root(&orb)?, &object, names)?;
    println!("omniNames bound {names} names in {:.0} s", start.elapsed().as_secs_f64());
    let omni_large = median_time(400, |nth| resolve(&context, nth))?;
    row("resolve, 100,000 names", large, omni_large, "us");
    Ok(())
}
