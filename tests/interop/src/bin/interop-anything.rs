//! `interop-anything --serve | --call REFERENCE [--no-euro] [-ORB…]`: serves `idl/anything.idl` as `interop-server` serves the
//! rest, or calls a server of it as `interop-client` does. With `--no-euro` narrow texts can say ISO 8859-1 only.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::process::ExitCode;
use std::{env, thread};

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::anything::client::{self, Narrow};
use spandrel_interop::anything::server;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => serve(&orb),
        ["--call", reference] => call(&orb, reference, Narrow::Unicode),
        ["--call", reference, "--no-euro"] => call(&orb, reference, Narrow::Latin1),
        _ => bail!("usage: interop-anything --serve | --call REFERENCE [--no-euro] [-ORB…]"),
    }
}

fn call(orb: &Orb, reference: &str, narrow: Narrow) -> anyhow::Result<ExitCode> {
    let tally = client::run(orb, reference, narrow, &mut |line| println!("{line}"))?;
    println!("{tally}");
    Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(orb: &Orb) -> anyhow::Result<ExitCode> {
    println!("{}", server::activate(orb)?);
    let watched = orb.clone();
    thread::spawn(move || {
        // Whoever started us is gone once this ends, well or not.
        let mut buffer = [0; 64];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        _ = watched.shutdown(false);
    });
    orb.run();
    Ok(ExitCode::SUCCESS)
}
