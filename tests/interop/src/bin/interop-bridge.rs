//! `interop-bridge HUB [-ORB…]`: prints the reference of a bridge to that hub on one line, then serves until
//! a client calls `Hub::shutdown` or its standard input ends.
#![forbid(unsafe_code)]

use std::env;

use anyhow::Context as _;
use spandrel_interop::{bridge, program, server};

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let hub = arguments.next().context("the reference of a hub is missing")?;
    let orb = server::orb(arguments)?;
    println!("{}", bridge::activate(&orb, &hub, bridge::TYPES)?);
    program::serve(&orb);
    Ok(())
}
