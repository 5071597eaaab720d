//! `interop-callbacks --serve | --call REFERENCE [-ORB…]`: serves `idl/callbacks.idl`, or is called back by a server of it. A client listens
//! nowhere.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::process::ExitCode;
use std::{env, thread};

use anyhow::bail;
use spandrel::{Endpoint, Orb};
use spandrel_interop::callbacks::{builder, client, server};

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let builder = builder().take_args(&mut arguments)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => {
            let orb = builder.build();
            println!("{}", server::serve(&orb)?);
            watch_standard_input(orb.clone());
            orb.run();
        }
        ["--call", reference] => {
            let orb = builder.listen(Endpoint::nowhere()).build();
            let tally = client::run(&orb, reference, &mut |line| println!("{line}"))?;
            println!("{tally}");
            orb.shutdown(true)?;
            return Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        _ => bail!("usage: interop-callbacks --serve | --call REFERENCE [-ORB…]"),
    }
    Ok(ExitCode::SUCCESS)
}

fn watch_standard_input(orb: Orb) {
    thread::spawn(move || {
        // Whoever started us is gone once this ends, well or not.
        let mut buffer = [0; 64];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        _ = orb.shutdown(false);
    });
}
