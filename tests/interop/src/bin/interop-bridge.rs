//! `interop-bridge HUB [-ORB…]`: prints the reference of a bridge to that hub on one line, then serves until it is told to shut
//! down or its standard input ends.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::{env, thread};

use anyhow::Context as _;
use spandrel_interop::{bridge, server};

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let hub = arguments.next().context("the reference of a hub is wanted")?;
    let orb = server::orb(arguments)?;
    println!("{}", bridge::activate(&orb, &hub, bridge::TYPES)?);
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
