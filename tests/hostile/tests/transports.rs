//! Memory of idle connections after long messages, over every transport and in every concurrency model, on both sides.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spandrel::Orb;
use spandrel::ssliop::{Ssliop, pem};
use spandrel_hostile::AttackedServer;
use spandrel_hostile::attacked::Target;
use spandrel_hostile::attacked_server::TIMEOUT;
use spandrel_test_support::certificates::Authority;

const CLIENTS: usize = 16;
/// The length of each request and each reply.
const OCTETS: usize = 4 << 20;
/// The memory, in KiB, that all idle connections may have more than before, on each side, where all messages together have
/// 64 MiB. Some of it is retained for the next long message of any connection.
const MOST: u64 = 24 << 10;

fn own_resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn await_release(side: &str, options: &[&str], kept: impl Fn() -> u64) {
    let start = Instant::now();
    while kept() > MOST {
        assert!(start.elapsed() < TIMEOUT, "the {side} keeps {} KiB of {MOST} allowed: {options:?}", kept());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Set in a process that runs one test alone, so that no other test changes its memory.
const ALONE: &str = "SPANDREL_TEST_ALONE";

/// Clients that exchange a long request and a long reply, and then do nothing.
#[test]
fn idle_connections_of_every_transport_keep_no_long_messages() {
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "transports::idle_connections_of_every_transport_keep_no_long_messages"]);
        let output = alone.env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("an authority");
    let identity = authority.issue("127.0.0.1");
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (chain, key) = (file("chain.pem", &identity.chain), file("key.pem", &identity.key));
    for concurrency in ["thread-per-connection", "reactive", "leader-followers", "thread-pool:4:64"] {
        for scheme in ["iiop", "ssliop", "uds", "shm"] {
            let endpoints = match scheme {
                "uds" | "shm" => format!("iiop://127.0.0.1:0;{scheme}://"),
                _ => format!("{scheme}://127.0.0.1:0"),
            };
            let mut options = vec!["-ORBConcurrency", concurrency, "-ORBListenEndpoints", &endpoints];
            if scheme == "ssliop" {
                options.extend(["-ORBSSLCertificate", &chain, "-ORBSSLKey", &key]);
            }
            let server = AttackedServer::start(&options).unwrap();
            let connect = || {
                let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()));
                let ssliop = ssliop.trust(pem::authorities(authority.pem().as_bytes()).unwrap());
                let orb = Orb::builder().protocol(ssliop).transports([scheme]).request_timeout(Some(TIMEOUT));
                let orb = orb.build().unwrap();
                let target = Target::unchecked_narrow(&orb.string_to_object(&server.reference).unwrap());
                target.ignore(&[1]).unwrap();
                (orb, target)
            };
            let clients: Vec<(Orb, Target)> = (0..CLIENTS).map(|_| connect()).collect();
            let resident = server.resident().unwrap();
            for (_, target) in &clients {
                target.ignore(&vec![7; OCTETS]).unwrap();
            }
            await_release("server", &options, || server.resident().unwrap().saturating_sub(resident));
            // A servant's own results are its own matter (docs/deployment.md), so this concerns the clients alone.
            let resident = own_resident();
            for (_, target) in &clients {
                assert_eq!(target.produce(OCTETS as u32).unwrap().len(), OCTETS);
            }
            await_release("client", &options, || own_resident().saturating_sub(resident));
        }
    }
}
