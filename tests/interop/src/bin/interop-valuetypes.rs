//! `interop-valuetypes --serve | --call REFERENCE [-ORB…]`: serves or calls `idl/values.idl`.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::program;
use spandrel_interop::valuetypes::{client, server};

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => {
            println!("{}", server::activate(&orb)?);
            program::serve(&orb);
            Ok(ExitCode::SUCCESS)
        }
        ["--call", reference] => Ok(program::report_totals(&client::run(&orb, reference, &mut program::say)?)),
        _ => bail!("usage: interop-valuetypes --serve | --call REFERENCE [-ORB…]"),
    }
}
