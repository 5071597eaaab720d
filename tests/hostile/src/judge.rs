//! Runs an attack and checks its effects against the limits.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use spandrel::SystemExceptionKind;

use crate::attacks::Attack;
use crate::good_client::ClientStatistics;
use crate::{AttackedServer, GoodClient};

/// The time after an attack within which a new client must be served.
pub const RECOVERY: Duration = Duration::from_secs(20);

/// The measurements of an attack.
#[derive(Debug)]
pub struct Outcome {
    pub attack: &'static str,
    pub client: ClientStatistics,
    /// The time from the attack's end until a new client was served.
    pub recovery: Duration,
    /// The peak of the server's additional memory, in KiB.
    pub peak_kib: u64,
    /// The limit of `peak_kib`.
    pub bound_kib: u64,
}

/// Attacks a server with these options.
///
/// # Errors
/// If the server does not withstand the attack: the good client is not served, the server exceeds its memory
/// or time limit, or it has exited.
pub fn attack(attack: &Attack, options: &[&str], strength: u32) -> Result<Outcome> {
    let options = [options, attack.options].concat();
    let mut server = AttackedServer::start(&options)?;
    let good_client = GoodClient::start(&server)?;
    good_client.wait_for_calls(20)?;
    let before = server.resident()?;
    server.reset_peak()?;
    (attack.run)(&server, strength).with_context(|| format!("{} failed to run", attack.name))?;
    let ended = Instant::now();
    let (orb, target) = server.target()?;
    while let Err(refused) = target.echo(&[1, 2, 3]) {
        // A server may stay at its connection limit until it notices the closed connections.
        let may_retry = refused.kind() == SystemExceptionKind::Transient && ended.elapsed() < RECOVERY;
        ensure!(may_retry, "a new client is not served after the attack: {refused}");
    }
    let recovery = ended.elapsed();
    orb.shutdown()?;
    good_client.wait_for_calls(20)?;
    let client = good_client.finish()?;
    server.check_alive()?;
    let peak_kib = server.peak()?.saturating_sub(before);
    let outcome = Outcome { attack: attack.name, client, recovery, peak_kib, bound_kib: attack.bound_kib };
    ensure!(outcome.recovery <= RECOVERY, "recovery took too long: {outcome}");
    ensure!(outcome.client.longest <= attack.max_call_time, "a call of the good client took too long: {outcome}");
    server.check_log()?;
    ensure!(outcome.peak_kib <= outcome.bound_kib, "the server used too much memory: {outcome}");
    Ok(outcome)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:28} peak +{} KiB of {} allowed, recovered in {} ms, {} good calls, the longest {} ms",
            self.attack,
            self.peak_kib,
            self.bound_kib,
            self.recovery.as_millis(),
            self.client.calls,
            self.client.longest.as_millis()
        )
    }
}
