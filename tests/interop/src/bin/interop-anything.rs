//! `interop-anything --serve | --call REFERENCE [--no-euro | --texts POINTS [--beyond POINTS]] [-ORB…]`: serves or
//! calls `idl/anything.idl`. With `--no-euro` narrow strings carry ISO 8859-1 only; with `--texts` the client
//! sends only that text (hexadecimal code points, separated by commas), and with `--beyond` one that must
//! raise DATA_CONVERSION.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use anyhow::{Context, bail};
use spandrel::Orb;
use spandrel_interop::anything::client::{self, Narrow};
use spandrel_interop::anything::server;
use spandrel_interop::program;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let say = &mut program::say;
    let tally = match words.as_slice() {
        ["--serve"] => {
            println!("{}", server::activate(&orb)?);
            program::serve(&orb);
            return Ok(ExitCode::SUCCESS);
        }
        ["--call", reference] => client::run(&orb, reference, Narrow::Unicode, say)?,
        ["--call", reference, "--no-euro"] => client::run(&orb, reference, Narrow::Latin1, say)?,
        ["--call", reference, "--texts", sample] => client::run_texts(&orb, reference, &text(sample)?, None, say)?,
        ["--call", reference, "--texts", sample, "--beyond", beyond] => {
            client::run_texts(&orb, reference, &text(sample)?, Some(&text(beyond)?), say)?
        }
        _ => bail!(
            "usage: interop-anything --serve | --call REFERENCE [--no-euro | --texts POINTS [--beyond POINTS]] [-ORB…]"
        ),
    };
    Ok(program::report_totals(&tally))
}

/// The text of hexadecimal code points, separated by commas.
fn text(points: &str) -> anyhow::Result<String> {
    let character = |point| char::from_u32(u32::from_str_radix(point, 16).ok()?);
    points
        .split(',')
        .map(character)
        .collect::<Option<_>>()
        .with_context(|| format!("`{points}` is not a list of code points"))
}
