//! `interop-features --serve | --call REFERENCE [--only PREFIX] [-ORB…]`: serves `idl/features.idl`, starting anew when told, or calls a
//! server of it.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, thread};

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::features::{build, client, server};

fn main() -> anyhow::Result<ExitCode> {
    let given: Vec<String> = env::args().skip(1).collect();
    let mut arguments = given.clone();
    let orb = build(Orb::builder().take_args(&mut arguments)?)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => serve(orb, &given),
        ["--call", reference] => call(&orb, reference, ""),
        ["--call", reference, "--only", only] => call(&orb, reference, only),
        _ => bail!("usage: interop-features --serve | --call REFERENCE [--only PREFIX] [-ORB…]"),
    }
}

fn call(orb: &Orb, reference: &str, only: &str) -> anyhow::Result<ExitCode> {
    let tally = client::run(orb, reference, only, &mut |line| println!("{line}"))?;
    println!("{tally}");
    Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(orb: Orb, given: &[String]) -> anyhow::Result<ExitCode> {
    let again = Arc::new(AtomicBool::new(false));
    let running = Arc::new(Mutex::new(orb.clone()));
    let watched = Arc::clone(&running);
    thread::spawn(move || {
        // Whoever started us is gone once this ends, well or not.
        let mut buffer = [0; 64];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        _ = watched.lock().expect("nothing panics while it is held").shutdown(false);
    });
    let mut orb = orb;
    for generation in 1.. {
        let reference = server::activate(&orb, generation, &again)?;
        if generation == 1 {
            println!("{reference}");
        }
        orb.run();
        if !again.swap(false, Ordering::AcqRel) {
            break;
        }
        orb.shutdown(true)?;
        orb = build(Orb::builder().take_args(&mut given.to_vec())?)?;
        *running.lock().expect("nothing panics while it is held") = orb.clone();
    }
    Ok(ExitCode::SUCCESS)
}
