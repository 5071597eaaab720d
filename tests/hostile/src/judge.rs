//! Runs an attack, and tells what it has done.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use spandrel::SystemExceptionKind;

use crate::attacks::Attack;
use crate::witness::Seen;
use crate::{Victim, Witness};

/// How soon after an attack a new client must be served.
pub const RECOVERY: Duration = Duration::from_secs(20);

/// What came of an attack.
#[derive(Debug)]
pub struct Outcome {
    pub attack: &'static str,
    pub seen: Seen,
    /// From the attack's end until a new client was served.
    pub recovery: Duration,
    /// KiB that the server had more, at the worst.
    pub peak_kib: u64,
    /// The most that it may have more.
    pub bound_kib: u64,
}

/// Lets a server with these options be attacked.
///
/// # Errors
/// If it did not stand the attack: the good client was not served, the server took too much memory or time, or is gone.
pub fn attack(attack: &Attack, options: &[&str], strength: u32) -> Result<Outcome> {
    let options = [options, attack.options].concat();
    let mut victim = Victim::start(&options)?;
    let witness = Witness::of(&victim)?;
    witness.await_calls(20)?;
    let before = victim.resident()?;
    victim.forget_peak()?;
    (attack.run)(&victim, strength).with_context(|| format!("{} could not be carried out", attack.name))?;
    let ended = Instant::now();
    let (orb, target) = victim.target()?;
    while let Err(refused) = target.echo(&[1, 2, 3]) {
        // Until it has seen that the attackers have gone a server may be full.
        let may_come_again = refused.kind() == SystemExceptionKind::Transient && ended.elapsed() < RECOVERY;
        ensure!(may_come_again, "a new client is not served after the attack: {refused}");
    }
    let recovery = ended.elapsed();
    orb.shutdown(true)?;
    witness.await_calls(20)?;
    let seen = witness.finish()?;
    victim.check_alive()?;
    let peak_kib = victim.peak()?.saturating_sub(before);
    let outcome = Outcome { attack: attack.name, seen, recovery, peak_kib, bound_kib: attack.bound_kib };
    ensure!(outcome.recovery <= RECOVERY, "it took too long to recover: {outcome}");
    ensure!(outcome.seen.longest <= attack.patience, "the good client had to wait too long: {outcome}");
    victim.check_log()?;
    ensure!(outcome.peak_kib <= outcome.bound_kib, "it took too much memory: {outcome}");
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
            self.seen.calls,
            self.seen.longest.as_millis()
        )
    }
}
