//! What the programs have in common: a server ends with whoever started it, and a client says what it has found.

use std::io;
use std::process::ExitCode;
use std::thread;

use spandrel::Orb;

use crate::suite::Tally;

/// Serves until somebody shuts the ORB down or the standard input ends.
pub fn serve(orb: &Orb) {
    let watched = orb.clone();
    when_input_ends(move || _ = watched.shutdown(false));
    orb.run();
}

/// Does this when whoever started us is gone, well or not.
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

/// What came of it all.
#[must_use]
pub fn told(tally: &Tally) -> ExitCode {
    println!("{tally}");
    if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
