//! `interop-features --serve | --call REFERENCE [--only PREFIX] [-ORB…]`: serves `idl/features.idl`, starting anew when told, or calls a
//! server of it.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::{env, thread};

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::features::{build, client, server};

fn main() -> anyhow::Result<ExitCode> {
    let given: Vec<String> = env::args().skip(1).collect();
    let mut arguments = given.clone();
    let builder = Orb::builder().take_args(&mut arguments)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => serve(&given),
        ["--call", reference] => call(&build(builder)?, reference, ""),
        ["--call", reference, "--only", only] => call(&build(builder)?, reference, only),
        _ => bail!("usage: interop-features --serve | --call REFERENCE [--only PREFIX] [-ORB…]"),
    }
}

fn call(orb: &Orb, reference: &str, only: &str) -> anyhow::Result<ExitCode> {
    let tally = client::run(orb, reference, only, &mut |line| println!("{line}"))?;
    println!("{tally}");
    Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(given: &[String]) -> anyhow::Result<ExitCode> {
    let running: Arc<Mutex<Option<Orb>>> = Arc::default();
    let watched = Arc::clone(&running);
    thread::spawn(move || {
        // Whoever started us is gone once this ends, well or not.
        let mut buffer = [0; 64];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        if let Some(orb) = &*watched.lock().expect("nothing panics while it is held") {
            _ = orb.shutdown(false);
        }
    });
    let make = || build(Orb::builder().take_args(&mut given.to_vec())?);
    let now = |orb: &Orb| *running.lock().expect("nothing panics while it is held") = Some(orb.clone());
    server::run(make, |reference| println!("{reference}"), now)?;
    Ok(ExitCode::SUCCESS)
}
