//! `spandrel bulk` against a server whose interface is known from its IDL alone.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::cargo::CommandCargoExt as _;
use serde_json::Value;
use spandrel::bulk::bulk::Offer;
use spandrel::bulk::{BulkServer, BulkServerBuilder, FileSink, FileSource, OfferedTo, Source};
use spandrel::dynamic::{DescribedCall, DescribedServant, NvList, RequestError, describe_file};
use spandrel::net::ipc::inet;
use spandrel::net::transport::Protocol as _;
use spandrel::ssliop::Ssliop;
use spandrel::types::{Any, TypeCode};
use spandrel::{Endpoint, Orb, OrbBuilder, Poa};
use spandrel_test_support::{ChildProcess, pattern, wait_until};

use crate::support::bank::Certificates;
use crate::support::{LIMIT, check_code, spandrel, stderr, stdout};

const IDL: &str = "
#include \"Bulk.idl\"
module Gallery {
  exception NoSuchImage { string name; };
  interface Images {
    Bulk::Offer fetch(in string name) raises (NoSuchImage);
    void store(in string name, out Bulk::Offer to);
    Bulk::Offer stall();
    Bulk::Offer relayed(in string name, in long cuts);
    unsigned long calls();
  };
};
";
/// The octets that a relay passes before it cuts a connection.
const CUT: usize = 1 << 20;

struct Gallery {
    orb: Orb,
    reference: String,
    folder: tempfile::TempDir,
    bulk: Arc<BulkServer>,
}

/// Octets that do not come while the transfer is wanted.
struct Stalled;

impl Source for Stalled {
    fn length(&self) -> Option<u64> {
        Some(1 << 20)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset > 0 {
            thread::sleep(Duration::from_millis(20));
        }
        let count = buffer.len().min(1);
        buffer[..count].fill(7);
        Ok(count)
    }
}

impl Gallery {
    fn open() -> Self {
        let builder = Orb::builder().listen(Endpoint::new("127.0.0.1", 0));
        Self::open_with(builder, |bulk| bulk.tcp(inet::Addr::loopback(0)))
    }

    fn open_with(builder: OrbBuilder, configure: impl FnOnce(BulkServerBuilder) -> BulkServerBuilder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("gallery.idl"), IDL).unwrap();
        let idl = describe_file(folder.path().join("gallery.idl"), [include()]).unwrap();
        let orb = builder.build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        let bulk = Arc::new(configure(BulkServer::builder(&poa)).open().unwrap());
        let (server, path, calls) = (Arc::clone(&bulk), folder.path().to_owned(), AtomicU32::new(0));
        let serve = move |call: &DescribedCall<'_>, list: &mut NvList| -> Result<Any, RequestError> {
            if &*call.operation.name == "calls" {
                return Ok(Any::new(calls.load(Ordering::Relaxed)).unwrap());
            }
            calls.fetch_add(1, Ordering::Relaxed);
            let name = |list: &NvList| Ok::<PathBuf, RequestError>(path.join(list.extract::<String>(0)?));
            let source = |path| server.offer_source(FileSource::open(path).unwrap(), &OfferedTo::Caller).unwrap().0;
            let offer = match &*call.operation.name {
                "fetch" => source(name(list)?),
                "stall" => server.offer_source(Stalled, &OfferedTo::Caller).unwrap().0,
                "relayed" => relayed(source(name(list)?), list.extract::<i32>(1)? as usize),
                _ => {
                    let sink = FileSink::create(name(list)?).unwrap();
                    let offer = server.offer_sink(sink, &OfferedTo::Caller).unwrap().0;
                    list.set(1, &offer)?;
                    return Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap());
                }
            };
            Ok(Any::new(offer).unwrap())
        };
        let images = idl.interface("Gallery::Images").unwrap();
        let reference = poa.activate(DescribedServant::described(images, serve)).unwrap().to_string();
        Self { orb, reference, folder, bulk }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The words of a command: direction, file, then operation and options.
    fn words(&self, direction: &str, file: &str, rest: &[&str]) -> Vec<String> {
        let (idl, include) = (self.path("gallery.idl"), include().display().to_string());
        let first = ["bulk", direction, &self.reference, &self.path(file)].map(str::to_owned);
        let rest = rest.iter().map(|word| (*word).to_owned());
        first.into_iter().chain(rest).chain(["--idl".to_owned(), idl, "-I".to_owned(), include]).collect()
    }

    fn run(&self, direction: &str, file: &str, rest: &[&str]) -> Output {
        let words = self.words(direction, file, rest);
        spandrel(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The calls that handed over streams.
    fn calls(&self) -> String {
        let (idl, include) = (self.path("gallery.idl"), include().display().to_string());
        stdout(&spandrel(&["call", "--idl", &idl, "-I", &include, &self.reference, "calls"]))
    }

    /// The names in the folder that are no files of the test.
    fn leftovers(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.') || name == "copy").collect()
    }
}

impl Drop for Gallery {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

/// The folder of Bulk.idl.
fn include() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../orb/bulk/idl")
}

/// The offer by way of a relay, which cuts its first connections.
fn relayed(offer: Offer, cuts: usize) -> Offer {
    let target = offer.at[0].strip_prefix("tcp://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for number in 0.. {
            let Ok((near, _)) = listener.accept() else { return };
            let Ok(far) = TcpStream::connect(&target) else { return };
            let limit = if number < cuts { CUT } else { usize::MAX };
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || pass(from, to, limit));
            }
        }
    });
    Offer { at: vec![at].try_into().unwrap(), ..offer }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut buffer = [0; 16 << 10];
    while left > 0 {
        let most = left.min(buffer.len());
        match from.read(&mut buffer[..most]) {
            Ok(count @ 1..) if to.write_all(&buffer[..count]).is_ok() => left -= count,
            _ => break,
        }
    }
    _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn files_are_sent_and_received() {
    let gallery = Gallery::open();
    let data = pattern(3 << 20);
    fs::write(gallery.path("own"), &data).unwrap();
    let put = gallery.run("put", "own", &["store", "image"]);
    check_code(&put, 0);
    assert!(stdout(&put).starts_with("3145728 octets by TCP, CRC-32 "), "{}", stdout(&put));
    wait_until("the whole file", || fs::read(gallery.path("image")).is_ok_and(|stored| stored == data));
    let get = gallery.run("get", "copy", &["fetch", "image", "--json"]);
    check_code(&get, 0);
    let outcome: Value = serde_json::from_str(&stdout(&get)).unwrap();
    assert_eq!((&outcome["octets"], &outcome["route"]), (&Value::from(3 << 20), &Value::from("TCP")));
    assert_eq!(stderr(&get), "", "a bar is for terminals");
    assert!(fs::read(gallery.path("copy")).unwrap() == data);
    assert_eq!(gallery.leftovers(), ["copy"]);
}

#[test]
fn a_broken_transfer_is_resumed() {
    let gallery = Gallery::open();
    let data = pattern(3 << 20);
    fs::write(gallery.path("image"), &data).unwrap();
    let get = gallery.run("get", "copy", &["relayed", "image", "2"]);
    check_code(&get, 0);
    assert!(fs::read(gallery.path("copy")).unwrap() == data);
    assert_eq!(gallery.bulk.statistics().accepted, 3, "two connections broke");

    fs::remove_file(gallery.path("copy")).unwrap();
    let get = gallery.run("get", "copy", &["relayed", "image", "2", "--resumptions", "1"]);
    check_code(&get, 1);
    let text = stderr(&get);
    assert!(text.starts_with("error: cannot receive ") && text.contains("the bulk connection broke after"), "{text}");
    assert!(gallery.leftovers().is_empty());
}

#[test]
fn a_transfer_ends_in_time_and_by_ctrl_c() {
    let gallery = Gallery::open();
    let late = gallery.run("get", "copy", &["stall", "--time-limit", "300ms"]);
    check_code(&late, 1);
    assert!(stderr(&late).contains("within 300ms"), "{}", stderr(&late));
    assert!(gallery.leftovers().is_empty());

    let mut command = Command::cargo_bin("spandrel").unwrap();
    command.args(gallery.words("get", "copy", &["stall"])).stderr(std::process::Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    wait_until("a connection", || gallery.bulk.statistics().accepted == 2);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let begin = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(begin.elapsed() < LIMIT);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("this side has cancelled the transfer: it was interrupted"), "{text}");
    assert!(gallery.leftovers().is_empty());
}

#[test]
fn what_cannot_be_transferred_is_explained() {
    let gallery = Gallery::open();
    fs::write(gallery.path("image"), b"1").unwrap();
    for (direction, file, rest, code, expected) in [
        ("get", "none/copy", &["fetch", "image"][..], 1, "cannot write"),
        ("get", "", &["fetch", "image"], 2, "is a folder: a file in it is expected"),
        ("put", "none", &["store", "image"], 1, "cannot read"),
        ("put", "image", &["calls"], 1, "the operation `calls` hands over no Bulk::Offer; these do: fetch, store"),
        ("get", "copy", &["fetsh", "image"], 1, "did you mean `fetch`?"),
        ("get", "copy", &["fetch", "image", "--listen", "nowhere.invalid:1"], 2, "cannot listen at nowhere.invalid:1"),
        ("get", "copy", &["fetch", "image", "--idle", "0"], 2, "expected a time above zero"),
    ] {
        let output = gallery.run(direction, file, rest);
        check_code(&output, code);
        assert!(stderr(&output).contains(expected), "{rest:?}: {}", stderr(&output));
    }
    assert_eq!(gallery.calls(), "0\n", "nothing was called for a file that cannot be used");
    let wrong = gallery.run("get", "copy", &["store", "other", "--json"]);
    check_code(&wrong, 1);
    assert!(stderr(&wrong).contains("the offer is for octets in the other direction"), "{}", stderr(&wrong));
    let failure: Value = serde_json::from_str(&stdout(&wrong)).unwrap();
    assert!(failure["error"].as_str().unwrap().starts_with("cannot receive "), "{failure}");
}

#[test]
fn a_file_flows_over_tls_if_the_calls_do() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new(folder.path());
    let text = |path: &PathBuf| path.display().to_string();
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()));
    let files = [&certificates.authority, &certificates.chain, &certificates.key].map(text);
    for (option, file) in ["-ORBSSLCA", "-ORBSSLCertificate", "-ORBSSLKey"].iter().zip(&files) {
        assert!(ssliop.option(option, file).unwrap());
    }
    let builder = Orb::builder().protocol(ssliop.clone()).listen("ssliop://127.0.0.1:0".parse().unwrap());
    let any = || inet::Addr::loopback(0);
    let gallery = Gallery::open_with(builder, |bulk| bulk.tcp(any()).tls(any(), &ssliop));
    fs::write(gallery.path("image"), pattern(100_000)).unwrap();
    let options = ["--ca", &files[0], "--cert", &files[1], "--key", &files[2]];
    let get = gallery.run("get", "copy", &[&["fetch", "image"][..], &options].concat());
    check_code(&get, 0);
    assert!(stdout(&get).starts_with("100000 octets by TLS, "), "{}", stdout(&get));
    assert!(fs::read(gallery.path("copy")).unwrap() == pattern(100_000));
}
