//! `interop-anything --serve | --call REFERENCE [--no-euro | --texts POINTS [--beyond POINTS]] [-ORB…]`: serves `idl/anything.idl`
//! as `interop-server` serves the rest, or calls a server of it as `interop-client` does. With `--no-euro` narrow texts can say ISO 8859-1 only;
//! with `--texts` nothing is sent but that text (code points in hexadecimal, with commas between), and one that is to be refused.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::process::ExitCode;
use std::{env, thread};

use anyhow::{Context, bail};
use spandrel::Orb;
use spandrel_interop::anything::client::{self, Narrow};
use spandrel_interop::anything::server;
use spandrel_interop::client::Tally;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let say = &mut |line: &str| println!("{line}");
    match words.as_slice() {
        ["--serve"] => serve(&orb),
        ["--call", reference] => told(client::run(&orb, reference, Narrow::Unicode, say)?),
        ["--call", reference, "--no-euro"] => told(client::run(&orb, reference, Narrow::Latin1, say)?),
        ["--call", reference, "--texts", sample] => {
            told(client::run_texts(&orb, reference, &text(sample)?, None, say)?)
        }
        ["--call", reference, "--texts", sample, "--beyond", beyond] => {
            told(client::run_texts(&orb, reference, &text(sample)?, Some(&text(beyond)?), say)?)
        }
        _ => bail!(
            "usage: interop-anything --serve | --call REFERENCE [--no-euro | --texts POINTS [--beyond POINTS]] [-ORB…]"
        ),
    }
}

/// The text of code points in hexadecimal with commas between.
fn text(points: &str) -> anyhow::Result<String> {
    let character = |point| char::from_u32(u32::from_str_radix(point, 16).ok()?);
    points.split(',').map(character).collect::<Option<_>>().with_context(|| format!("`{points}` are no code points"))
}

fn told(tally: Tally) -> anyhow::Result<ExitCode> {
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
