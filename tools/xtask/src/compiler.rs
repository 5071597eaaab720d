//! Our IDL compiler as a program, and the IDL that packages ship.

use std::env;
use std::process::Command;

use crate::place;

/// Where packages put it.
pub(crate) const SHIPPED: &str = "/usr/share/idl/omniORB";

/// Our compiler.
pub(crate) fn compiler() -> Command {
    let program = place::target().join("debug").join(format!("spandrel{}", env::consts::EXE_SUFFIX));
    let mut command = Command::new(program);
    command.arg("idl");
    command
}

/// What it is told for files that packages ship, and for all that is compared: where they are, and what omniidl is.
pub(crate) fn shipped() -> [String; 3] {
    ["-D__OMNIIDL__=1".to_owned(), format!("-I{SHIPPED}"), format!("-I{SHIPPED}/COS")]
}
