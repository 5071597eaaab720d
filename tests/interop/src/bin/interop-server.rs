//! `interop-server [-ORB…]`: prints its hub's reference on one line, then serves until a client calls `Hub::shutdown`
//! or its standard input ends.
#![forbid(unsafe_code)]

use std::env;

use spandrel_interop::{program, server};

fn main() -> anyhow::Result<()> {
    let orb = server::orb(env::args().skip(1))?;
    println!("{}", server::activate(&orb)?);
    program::serve(&orb);
    Ok(())
}
