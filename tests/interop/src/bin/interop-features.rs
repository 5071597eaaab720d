//! `interop-features --serve | --call REFERENCE [--only PREFIX] [-ORB…]`: serves `idl/features.idl`, restarting on
//! request, or calls such a server.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::features::{build, client, server};
use spandrel_interop::program;

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
    Ok(program::report_totals(&client::run(orb, reference, only, &mut program::say)?))
}

fn serve(given: &[String]) -> anyhow::Result<ExitCode> {
    let running: Arc<Mutex<Option<Orb>>> = Arc::default();
    let watched = Arc::clone(&running);
    program::when_input_ends(move || {
        if let Some(orb) = &*watched.lock().expect("no thread panics with the lock held") {
            _ = orb.begin_shutdown();
        }
    });
    let make = || build(Orb::builder().take_args(&mut given.to_vec())?);
    let set_running = |orb: &Orb| *running.lock().expect("no thread panics with the lock held") = Some(orb.clone());
    server::run(make, program::say, set_running)?;
    Ok(ExitCode::SUCCESS)
}
