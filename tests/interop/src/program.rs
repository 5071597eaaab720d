//! Shared parts of the programs: a server ends with its parent process, and a client reports its results.

use std::io;
use std::process::ExitCode;
use std::thread;

use spandrel::Orb;

use crate::suite::Tally;

/// Serves until the ORB is shut down or the standard input ends.
pub fn serve(orb: &Orb) {
    let serving = orb.clone();
    when_input_ends(move || _ = serving.begin_shutdown());
    orb.run();
}

/// Calls the closure when the standard input ends: the parent process has exited or closed it.
pub fn when_input_ends(then: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        then();
    });
}

/// Writes a line.
pub fn say(line: &str) {
    println!("{line}");
}

/// Prints the totals; the exit code is 1 if a case failed.
#[must_use]
pub fn report_totals(tally: &Tally) -> ExitCode {
    println!("{tally}");
    if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
