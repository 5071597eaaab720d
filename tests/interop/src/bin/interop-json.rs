//! `interop-json --call|--device REFERENCE --through call|proxy|console [-ORB…]`: calls the objects of a hub, or a device of
//! TANGO, in JSON through one of our tools.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use anyhow::bail;
use spandrel::Orb;
use spandrel_interop::json::client;
use spandrel_interop::program;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let tally = match words.as_slice() {
        ["--call", reference, "--through", tool] => {
            client::call_hub(&orb, reference, tool.parse()?, folder, &mut program::say)?
        }
        ["--device", url, "--through", tool] => {
            client::call_device(&orb, url, tool.parse()?, folder, &mut program::say)?
        }
        _ => bail!("usage: interop-json --call|--device REFERENCE --through call|proxy|console [-ORB…]"),
    };
    Ok(program::report_totals(&tally))
}
