//! Runs random scenarios and kills at length, against servers of each kind. `faults [SCENARIOS]`, by default
//! 4000.

use anyhow::Result;
use spandrel_faults::scenario::ServerKind;
use spandrel_faults::{random_kills, random_scenarios};

const PLAIN: ServerKind = ServerKind { asynchronous: false, secure: false };
const ASYNCHRONOUS: ServerKind = ServerKind { asynchronous: true, secure: false };
const SECURE: ServerKind = ServerKind { asynchronous: false, secure: true };

const CONFIGURATIONS: [(ServerKind, &[&str]); 8] = [
    (PLAIN, &[]),
    (ASYNCHRONOUS, &[]),
    (PLAIN, &["-ORBConcurrency", "leader-followers"]),
    (PLAIN, &["-ORBConcurrency", "thread-pool:4:64"]),
    (PLAIN, &["-ORBConcurrency", "reactive"]),
    (PLAIN, &["-ORBConcurrency", "leader-followers", "-ORBReplyBatching", "yes"]),
    (SECURE, &[]),
    (SECURE, &["-ORBConcurrency", "leader-followers"]),
];

fn main() -> Result<()> {
    let scenarios = std::env::args().nth(1).map_or(Ok(4000), |text| text.parse::<usize>())?;
    let seed = random_scenarios::seed()?;
    println!("SPANDREL_FAULTS_SEED={seed}");
    for (kind, options) in CONFIGURATIONS {
        let tally = random_scenarios::run(seed, scenarios / CONFIGURATIONS.len(), kind, options)?;
        let servants = if kind.asynchronous { "asynchronous" } else { "synchronous" };
        let over = if kind.secure { " over TLS" } else { "" };
        println!("{servants} servants{over} {}: {tally}", options.join(" "));
    }
    let kills = scenarios / 100 + 1;
    for endpoint in random_kills::ENDPOINTS {
        let (calls, failed) = random_kills::kill_servers(seed, kills, endpoint)?;
        println!("{kills} servers killed, {endpoint}: {calls} calls, {failed} failed");
        let calls = random_kills::kill_clients(seed, kills as u64, endpoint)?;
        println!("{kills} clients killed, {endpoint}: {calls} calls");
    }
    Ok(())
}
