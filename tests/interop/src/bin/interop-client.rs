//! `interop-client REFERENCE [--only PREFIX] [-ORB…]`: runs the cases whose names begin with the prefix, one line each;
//! exit code 1 if any failed.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use anyhow::bail;
use spandrel_interop::{client, program};

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = spandrel_interop::builder().take_args(&mut arguments)?.build()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (reference, only) = match words.as_slice() {
        [reference] => (*reference, ""),
        [reference, "--only", prefix] => (*reference, *prefix),
        _ => bail!("usage: interop-client REFERENCE [--only PREFIX] [-ORB…]"),
    };
    Ok(program::report_totals(&client::run(&orb, reference, only, &mut program::say)?))
}
