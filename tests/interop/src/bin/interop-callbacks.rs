//! `interop-callbacks --serve | --call REFERENCE [-ORB…]`: serves `idl/callbacks.idl`, or calls such a
//! server, which calls back. The client does not listen.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use anyhow::bail;
use spandrel::Endpoint;
use spandrel_interop::callbacks::{builder, client, server};
use spandrel_interop::program;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let builder = builder().take_args(&mut arguments)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => {
            let orb = builder.build()?;
            println!("{}", server::serve(&orb)?);
            program::serve(&orb);
            Ok(ExitCode::SUCCESS)
        }
        ["--call", reference] => {
            let orb = builder.listen(Endpoint::nowhere()).build()?;
            let tally = client::run(&orb, reference, &mut program::say)?;
            orb.shutdown()?;
            Ok(program::report_totals(&tally))
        }
        _ => bail!("usage: interop-callbacks --serve | --call REFERENCE [-ORB…]"),
    }
}
