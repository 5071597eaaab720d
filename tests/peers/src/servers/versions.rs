//! The versions of the tools that the servers depend on (table B.1 of paper 004).

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use spandrel_measure::table::{Align, with_columns};

use crate::packages;

/// A tool and its version; an absent one says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) tool: &'static str,
    pub(super) version: String,
}

/// The versions of all tools: the system, compilers, libraries and interpreters.
pub(super) fn all() -> Vec<Version> {
    let wine = packages::find(packages::WINE_LOADERS).unwrap_or_else(|| "wine64".into());
    let rows = [
        ("kernel", read("/proc/sys/kernel/osrelease").map(|release| format!("{} {}", env::consts::OS, release.trim()))),
        ("C library", first_line(Path::new("getconf"), &["GNU_LIBC_VERSION"])),
        ("C compiler", first_line(Path::new("cc"), &["--version"])),
        ("C++ compiler", first_line(Path::new("g++"), &["--version"])),
        ("C compiler for Windows", first_line(Path::new("x86_64-w64-mingw32-gcc"), &["--version"])),
        ("Wine", first_line(&wine, &["--version"])),
        ("liburing", first_line(Path::new("pkg-config"), &["--modversion", "liburing"])),
        ("ACE", read("/usr/include/ace/Version.h").and_then(|text| ace_version(&text))),
        ("Asio", read("/usr/include/asio/version.hpp").and_then(|text| asio_version(&text))),
        ("Java", first_line(Path::new("java"), &["-version"])),
        ("Tcl", tcl_version("Tcl")),
        ("TclX", tcl_version("Tclx")),
        ("Rust", first_line(Path::new("rustc"), &["--version"])),
    ];
    rows.into_iter()
        .map(|(tool, version)| Version { tool, version: version.unwrap_or_else(|| "absent".to_owned()) })
        .collect()
}

/// The versions as a Markdown table.
pub(super) fn table() -> String {
    let mut table = with_columns(&[("tool", Align::Left), ("version", Align::Left)]);
    all().into_iter().for_each(|Version { tool, version }| table.add_row([tool.to_owned(), version]));
    format!("{table:#}\n")
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The first line that a program prints to its output, or else to its error output, where Java prints its
/// version.
fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).lines().next().map(|line| line.trim().to_owned())
}

/// The version in ACE's header, of a line such as `#define ACE_VERSION "7.0.8"`.
fn ace_version(header: &str) -> Option<String> {
    let value = header.lines().find_map(|line| line.strip_prefix("#define ACE_VERSION "))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// The version in Asio's header, of a line such as `#define ASIO_VERSION 102201 // 1.22.1`.
fn asio_version(header: &str) -> Option<String> {
    let value = header.lines().find_map(|line| line.strip_prefix("#define ASIO_VERSION "))?;
    let number: u32 = value.split_whitespace().next()?.parse().ok()?;
    Some(format!("{}.{}.{}", number / 100_000, number / 100 % 1000, number % 100))
}

/// The version of a package of Tcl.
fn tcl_version(package: &str) -> Option<String> {
    let script = tempfile::NamedTempFile::new().ok()?;
    fs::write(script.path(), format!("puts [package require {package}]\n")).ok()?;
    first_line(Path::new("tclsh"), &[script.path().to_str()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_headers_and_programs() {
        assert_eq!(ace_version("#define ACE_MAJOR_VERSION 7\n#define ACE_VERSION \"7.0.8\"\n").unwrap(), "7.0.8");
        assert_eq!(asio_version("#define ASIO_VERSION 102201 // 1.22.1\n").unwrap(), "1.22.1");
        assert_eq!(asio_version("#define ASIO_VERSION_HPP\n"), None);
        let sh = |script: &str| first_line(Path::new("sh"), &["-c", script]);
        assert_eq!(sh("echo ' one'; echo two").unwrap(), "one");
        assert_eq!(sh("echo java >&2").unwrap(), "java");
        assert_eq!(sh("echo no; exit 1"), None);
        assert_eq!(first_line(Path::new("/nonexistent"), &[]), None);
    }
}
