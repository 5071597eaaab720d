//! A short run of each attack against servers of each concurrency model; `cargo xtask hostile` runs them at
//! length.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};

use spandrel_cdr::Encoder;
use spandrel_giop::{ListenPoint, RequestTemplate, ResponseFlags};
use spandrel_hostile::{AttackedServer, attacks, judge, wire};

fn withstands_every_attack(options: &[&str]) {
    for attack in &attacks::ALL {
        match judge::attack(attack, options, 2) {
            Ok(outcome) => println!("{outcome}"),
            Err(error) => panic!("{} against {options:?}: {error:#}", attack.name),
        }
    }
}

#[test]
fn thread_per_connection_servers_withstand_every_attack() {
    withstands_every_attack(&[]);
}

#[test]
fn leader_followers_servers_withstand_every_attack() {
    withstands_every_attack(&["-ORBConcurrency", "leader-followers"]);
}

#[test]
fn thread_pool_servers_withstand_every_attack() {
    withstands_every_attack(&["-ORBConcurrency", "thread-pool:4:64"]);
}

/// Listen points of a bidirectional context are texts of a peer.
#[test]
fn listen_points_write_no_lines_of_their_own() {
    let server = AttackedServer::start(&["-ORBBidirectional", "yes"]).unwrap();
    let host = format!("x\n2026-11-28 ERROR forged \u{1b}[2J\u{9b}{}", "y".repeat(10_000));
    let points = vec![ListenPoint { host, port: 1 }; 60];
    let contexts = [ListenPoint::to_context(&points).unwrap()];
    for request_id in 0..5 {
        let mut out = Encoder::new(wire::native_wire());
        let template = RequestTemplate::new(wire::native_wire(), &server.profile.object_key);
        let body = template.begin(&mut out, request_id, ResponseFlags::WITH_TARGET, "_non_existent", &contexts);
        body.end(&mut out).unwrap();
        let mut stream = server.connect().unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        stream.read_exact(&mut [0; 12]).unwrap();
    }
    // Each line is written before the reply, and read by a thread afterwards.
    let has_lines = || server.log().iter().filter(|line| line.contains("a listen point is not trusted")).count() >= 10;
    let end = std::time::Instant::now() + spandrel_hostile::attacked_server::TIMEOUT;
    while !has_lines() {
        assert!(std::time::Instant::now() < end, "{:?}", server.log());
        std::thread::yield_now();
    }
    let log = server.log();
    assert!(log.len() <= 20, "ten lines of each cause in a minute: {}", log.len());
    for line in log {
        assert!(line.len() < 1_000 && !line.starts_with("2026-11-28 ERROR forged"), "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}
