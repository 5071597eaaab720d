//! `interop-server [-ORB…]`: prints its hub's reference on one line, then serves until it is told to shut down or its
//! standard input ends.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::{env, thread};

use spandrel_interop::server;

fn main() -> anyhow::Result<()> {
    let orb = server::orb(env::args().skip(1))?;
    println!("{}", server::activate(&orb)?);
    let watched = orb.clone();
    thread::spawn(move || {
        // Whoever started us is gone once this ends, well or not.
        let mut buffer = [0; 64];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        _ = watched.shutdown(false);
    });
    orb.run();
    Ok(())
}
