//! Our IDL compiler as a program, and the IDL that packages ship.

use std::env;
use std::process::Command;

use xtask::workspace;

/// The folder of the IDL files in packages.
pub(crate) const SHIPPED: &str = "/usr/share/idl/omniORB";

/// Our compiler.
pub(crate) fn compiler() -> Command {
    let program = workspace::target().join("debug").join(format!("spandrel{}", env::consts::EXE_SUFFIX));
    let mut command = Command::new(program);
    command.arg("idl");
    command
}

/// The arguments for files of packages, and for every comparison: their folders, and the macro of omniidl.
pub(crate) fn shipped() -> [String; 3] {
    ["-D__OMNIIDL__=1".to_owned(), format!("-I{SHIPPED}"), format!("-I{SHIPPED}/COS")]
}
