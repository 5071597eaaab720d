//! `interop-names --serve | --beside-omninames | --call PORT [-ORB…]`: serves an object bound in a naming
//! service, our own or omniORB's, and prints the naming service's port; or resolves the object there.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::names::{client, server};
use spandrel_interop::program;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve"] => {
            println!("{}", server::serve(&orb)?);
            program::serve(&orb);
        }
        ["--beside-omninames"] => {
            let (_naming_service, port) = server::serve_beside_omninames(&orb)?;
            println!("{port}");
            program::serve(&orb);
        }
        ["--call", port] => {
            return Ok(program::report_totals(&client::run(&orb, port, &mut program::say)));
        }
        _ => bail!("usage: interop-names --serve | --beside-omninames | --call PORT [-ORB…]"),
    }
    Ok(ExitCode::SUCCESS)
}
