//! `interop-names --serve | --beside-omninames | --call PORT [-ORB…]`: serves an object that a naming service knows, ours or omniORB's,
//! and says the naming service's port; or looks for it there.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::process::ExitCode;
use std::{env, thread};

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::names::{client, server};

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => {
            println!("{}", server::serve(&orb)?);
            run(&orb);
        }
        ["--beside-omninames"] => {
            let (_naming_service, port) = server::serve_beside_omninames(&orb)?;
            println!("{port}");
            run(&orb);
        }
        ["--call", port] => {
            let tally = client::run(&orb, port, &mut |line| println!("{line}"));
            println!("{tally}");
            return Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        _ => bail!("usage: interop-names --serve | --beside-omninames | --call PORT [-ORB…]"),
    }
    Ok(ExitCode::SUCCESS)
}

fn run(orb: &Orb) {
    let watched = orb.clone();
    thread::spawn(move || {
        // Whoever started us is gone once this ends, well or not.
        let mut buffer = [0; 64];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        _ = watched.shutdown(false);
    });
    orb.run();
}
