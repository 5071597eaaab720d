//! Misfortunes at length, against servers of each arrangement. `faults [ROUNDS]`, by default 4000.

use anyhow::Result;
use spandrel_faults::script::Kind;
use spandrel_faults::{rounds, storm};

const PLAIN: Kind = Kind { asynchronous: false, secure: false };
const LATER: Kind = Kind { asynchronous: true, secure: false };
const SECURE: Kind = Kind { asynchronous: false, secure: true };

const ARRANGEMENTS: [(Kind, &[&str]); 7] = [
    (PLAIN, &[]),
    (LATER, &[]),
    (PLAIN, &["-ORBConcurrency", "leader-followers"]),
    (PLAIN, &["-ORBConcurrency", "thread-pool:4:64"]),
    (PLAIN, &["-ORBConcurrency", "reactive"]),
    (SECURE, &[]),
    (SECURE, &["-ORBConcurrency", "leader-followers"]),
];

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(4000), |text| text.parse::<usize>())?;
    let seed = rounds::seed()?;
    println!("SPANDREL_FAULTS_SEED={seed}");
    for (kind, options) in ARRANGEMENTS {
        let tally = rounds::run(seed, rounds / ARRANGEMENTS.len(), kind, options)?;
        let servants = if kind.asynchronous { "asynchronous" } else { "synchronous" };
        let over = if kind.secure { " over TLS" } else { "" };
        println!("{servants} servants{over} {}: {tally}", options.join(" "));
    }
    let kills = rounds / 100 + 1;
    for endpoint in storm::ENDPOINTS {
        let (calls, failed) = storm::over_servers(seed, kills, endpoint)?;
        println!("{kills} servers killed, {endpoint}: {calls} calls, {failed} failed");
        let calls = storm::over_clients(seed, kills as u64, endpoint)?;
        println!("{kills} clients killed, {endpoint}: {calls} calls");
    }
    Ok(())
}
