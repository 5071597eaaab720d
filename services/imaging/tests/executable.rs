//! The executable `spandrel-imaging`: its lines, exit codes, and its end at any instant.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::Orb;
use spandrel::bulk::{BulkClient, Route};
use spandrel::ssliop::{Ssliop, pem};
use spandrel_imaging::imaging::Store;
use spandrel_test_support::certificates::Authority;
use spandrel_test_support::{ChildProcess, check_output_errors, free_port, wait_until};

use crate::support::{elements, files, grey, receive, region, upload};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-imaging"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// A process that serves the store in this folder, and the URL of the store.
pub(crate) struct Process {
    child: ChildProcess,
    pub(crate) url: String,
}

impl Process {
    fn start(folder: &Path, words: &[&str]) -> Self {
        Self::with(folder, &[&["--listen", "iiop://127.0.0.1:0"], words].concat())
    }

    /// A process with these options.
    pub(crate) fn with(folder: &Path, words: &[&str]) -> Self {
        let mut command = command();
        command.arg("--data").arg(folder).args(words);
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("ready: ImageStore ").expect("the line of readiness").to_owned();
        Self { child, url }
    }

    fn store(&self, client: &Orb) -> Store {
        client.string_to_object(&self.url).unwrap().narrow().unwrap()
    }
}

/// The pixels of an image, and its file.
type Contents = (Vec<u8>, Vec<u8>);

/// Each round ends the service at another instant of several uploads. `SPANDREL_KILLS` is the number of rounds.
#[test]
fn kill_9_in_uploads_leaves_whole_images_and_no_halves() {
    const WORKERS: u32 = 4;
    let folder = tempfile::tempdir().unwrap();
    let rounds: usize = std::env::var("SPANDREL_KILLS").map_or(4, |rounds| rounds.parse().unwrap());
    // The images that are there, each with its file and pixels.
    let mut expected = BTreeMap::<u64, Contents>::new();
    let (mut acknowledged, mut uncertain) = (0, 0);
    let mut unconfirmed = Vec::<(u64, Contents)>::new();
    for round in 0..=rounds {
        let client = Orb::builder().build().unwrap();
        let mut process = Process::start(folder.path(), &[]);
        let store = process.store(&client);
        let present = store.find("tests", &elements(&[]), 0, 1_000).unwrap();
        assert!(present.is_last);
        for (image, contents) in unconfirmed.drain(..) {
            if present.images.contains(&image) {
                expected.insert(image, contents);
                uncertain += 1;
            }
        }
        assert_eq!(present.images[..], expected.keys().copied().collect::<Vec<_>>()[..]);
        for (image, (pixels, file)) in &expected {
            assert!(receive(&store.download(*image).unwrap()) == *file, "image {image}");
            let whole = store.describe(*image).unwrap().zoom[0];
            let area = region(0, 0, whole.columns, whole.rows);
            assert!(receive(&store.view(*image, 0, &area).unwrap()) == *pixels, "image {image}");
        }
        let names: Vec<String> =
            expected.keys().flat_map(|image| ["tiff", "tiles"].map(|ending| format!("{image}.{ending}"))).collect();
        let mut names = names;
        names.sort_unstable();
        assert_eq!(files(&folder.path().join("images")), names);
        // The test stays as fast in its last rounds as in the first.
        while expected.len() > 8 {
            let (image, _) = expected.pop_first().unwrap();
            store.remove(image).unwrap();
        }
        if round == rounds {
            client.shutdown().unwrap();
            break;
        }
        let (steps, acknowledged_now) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let worker = |worker: u32| {
                let (store, steps, acknowledged_now) = (store.clone(), Arc::clone(&steps), &acknowledged_now);
                scope.spawn(move || {
                    let mut images = Vec::new();
                    loop {
                        let (columns, rows) = (fastrand::u32(1..600), fastrand::u32(1..300));
                        let (pixels, file) = grey(columns + worker, rows);
                        let Ok((image, offer)) = store.upload("tests", &elements(&[]), file.len() as u64) else {
                            return (images, None);
                        };
                        steps.fetch_add(1, Ordering::Relaxed);
                        let progress = Arc::clone(&steps);
                        let client = BulkClient::default().resumptions(0).calls(false).on_progress(move |_| {
                            progress.fetch_add(1, Ordering::Relaxed);
                        });
                        let sent = client.send(&offer, &file);
                        if sent.is_err() {
                            return (images, Some((image, (pixels, file))));
                        }
                        acknowledged_now.fetch_add(1, Ordering::Relaxed);
                        images.push((image, (pixels, file)));
                    }
                })
            };
            let workers: Vec<_> = (0..WORKERS).map(worker).collect();
            let instant = fastrand::usize(1..60);
            wait_until("uploads", || steps.load(Ordering::Relaxed) >= instant);
            process.child.kill().unwrap();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        acknowledged += acknowledged_now.into_inner();
        for (images, last) in outcomes {
            expected.extend(images);
            unconfirmed.extend(last);
        }
        client.shutdown().unwrap();
    }
    println!("{rounds} ends, {acknowledged} acknowledged uploads; {uncertain} images came without an acknowledgement");
}

#[test]
fn a_client_by_tls_sends_and_receives_pixels_over_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("Hospital CA");
    let server = authority.write_options(folder.path(), "127.0.0.1");
    let mut words = vec!["--listen", "ssliop://127.0.0.1:0", "--bulk-tls", "127.0.0.1:0"];
    words.extend(server.iter().map(String::as_str));
    let process = Process::with(&folder.path().join("data"), &words);
    let identity = authority.issue("viewer");
    let (chain, key) = (pem::certificates(identity.chain.as_bytes()), pem::private_key(identity.key.as_bytes()));
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
        .identity(chain.unwrap(), key.unwrap())
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap());
    let client = Orb::builder().protocol(ssliop.clone()).build().unwrap();
    let store = process.store(&client);
    let (_, file) = grey(300, 200);
    let (image, destination) = store.upload("tests", &elements(&[]), file.len() as u64).unwrap();
    assert!(destination.at.iter().all(|at| at.starts_with("tls://127.0.0.1:")), "{:?}", destination.at);
    let bulk = BulkClient::default().tls(&ssliop).calls(false);
    let sent = bulk.send(&destination, &file).unwrap();
    assert_eq!((sent.route, sent.is_verified), (Route::Tls, true));
    let mut received = Vec::new();
    let outcome = bulk.receive(&store.download(image).unwrap(), &mut received).unwrap();
    assert!(received == file && outcome.is_verified && outcome.route == Route::Tls, "{outcome:?}");
    let in_clear = BulkClient::default().calls(false).receive(&store.download(image).unwrap(), &mut Vec::new());
    assert!(in_clear.is_err(), "{in_clear:?}");
    client.shutdown().unwrap();
}

#[cfg(unix)]
#[test]
fn a_viewer_of_the_same_user_gets_the_open_file() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), &[]);
    let client = Orb::builder().build().unwrap();
    let store = process.store(&client);
    let (_, file) = grey(100, 100);
    let image = upload(&store, &file).unwrap();
    let mut received = Vec::new();
    let outcome = BulkClient::default().receive(&store.download(image).unwrap(), &mut received).unwrap();
    assert!(received == file && outcome.is_verified && outcome.route == Route::PassedFile, "{outcome:?}");
    client.shutdown().unwrap();
}

#[test]
fn the_numbers_of_requests_are_at_the_endpoint_of_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let endpoint = format!("-ORBMetricsEndpoint {address}");
    let process = Process::start(folder.path(), &["--orb", &endpoint, "--orb", "-ORBMetrics yes"]);
    let client = Orb::builder().build().unwrap();
    process.store(&client).find("tests", &elements(&[]), 0, 1).unwrap();
    let read = || {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        text
    };
    let counted = |line: &str| line.starts_with("spandrel_request_seconds_count{") && line.contains("\"find\"");
    // A request is counted after its reply.
    wait_until("the number of the request", || read().lines().any(counted));
    client.shutdown().unwrap();
}

#[test]
fn a_store_is_checked_and_copied_and_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut process = Process::start(&data, &[]);
    let client = Orb::builder().build().unwrap();
    upload(&process.store(&client), &grey(10, 10).1).unwrap();
    let initial = format!("-ORBInitRef ImageStore={}", process.url);
    let output = command().args(["backup", "--orb", &initial, "--timeout", "60", "monday"]).output().unwrap();
    let copy = data.join("backups/imaging/monday");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(Path::new(printed.trim()).canonicalize().unwrap(), copy.canonicalize().unwrap(), "{output:?}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    client.shutdown().unwrap();

    let check = || command().arg("--data").arg(&data).arg("check").output().unwrap();
    let output = check();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.starts_with("the store is sound: 1 images of "), "{output:?}");
    let output = command().args(["backup", "--server", "127.0.0.77", "monday"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("127.0.0.77:2813"), "{errors}");
    for words in [&["--help"][..], &["check"]] {
        check_output_errors(|| {
            let mut command = command();
            command.arg("--data").arg(&data).args(words);
            command
        });
    }
    std::fs::write(data.join("imaging.redb"), "no database").unwrap();
    for output in [check(), command().args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(&data).output().unwrap()] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && errors.contains("imaging.redb"), "{errors}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), &[]);
    spandrel_test_support::threads::check_daemon(process.child.id());
}
