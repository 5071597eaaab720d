//! Debian packages that tasks need: detected, installed where that is permitted, otherwise named.
//!
//! `.ci/packages` has all of them with the signs of their presence; a task names its packages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The list of packages with their signs.
const LIST: &str = include_str!("../../../.ci/packages");

/// Tools that build and run the omniORB peers.
pub(crate) const OMNIORB: &[&str] =
    &["g++", "make", "pkg-config", "omniidl", "omniorb-nameserver", "libomniorb4-dev", "omniorb-idl"];

/// The event service of omniORB, with its tools and its IDL files.
pub(crate) const OMNI_EVENTS: &[&str] = &["omnievents", "libomnievents-dev"];

/// Tools that build and run the JacORB peers; Maven downloads JacORB itself.
pub(crate) const JACORB: &[&str] = &["openjdk-17-jdk-headless", "maven"];

/// The cluster of the naming service over etcd, and the compiler that its client needs.
pub(crate) const ETCD: &[&str] = &["etcd-server", "protobuf-compiler", "libprotobuf-dev"];

/// The cluster of the event service over JetStream.
pub(crate) const JETSTREAM: &[&str] = &["nats-server"];

/// A device server of the TANGO control system.
pub(crate) const TANGO: &[&str] = &["tango-test"];

/// The library and the tools that build the programs over ACE.
pub(crate) const ACE: &[&str] = &["g++", "make", "libace-dev"];

/// The tools that build programs in C++ without libraries.
pub(crate) const CPP: &[&str] = &["g++", "make"];

/// The compiler and the library that build the servers over POSIX calls.
pub(crate) const POSIX_SERVERS: &[&str] = &["gcc", "make", "liburing-dev"];

/// The libraries and the tools that build the programs over TI-RPC.
pub(crate) const RPC: &[&str] = &["gcc", "make", "pkg-config", "libtirpc-dev", "rpcsvc-proto"];

/// The library and the tools that build the programs over Asio.
pub(crate) const ASIO: &[&str] = &["g++", "make", "libasio-dev"];

/// Tools that build and run programs in Java without libraries.
pub(crate) const JAVA: &[&str] = &["openjdk-17-jdk-headless", "make"];

/// The interpreter of Tcl, and its extension that handles signals.
pub(crate) const TCL: &[&str] = &["tcl", "make", "tclx8.4"];

/// Programs that capture traffic and dissect it.
pub(crate) const CAPTURING: &[&str] = &["tshark", "wireshark-common", "util-linux", "iproute2"];

/// Programs that make network namespaces and enter them.
pub(crate) const NAMESPACES: &[&str] = &["iproute2", "util-linux", "procps"];

/// The program that makes certificates; the one for Java comes with Java.
pub(crate) const CERTIFICATES: &[&str] = &["openssl"];

/// The other compiler, and the IDL files, for the comparison of IDL compilers.
pub(crate) const IDL: &[&str] = &["omniidl", "omniorb-idl", "omniorb-doc", "libomnievents-dev", "tcl-combat"];

/// Further programs that record golden messages.
pub(crate) const RECORDING: &[&str] = &["python3", "tshark"];

/// Tools that build and run programs for a big-endian machine.
pub(crate) const BIG_ENDIAN: &[&str] = &["qemu-user", "gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"];

/// Tools that build and run the tests for Windows.
pub(crate) const WINDOWS: &[&str] = &["gcc-mingw-w64-x86-64", "wine64"];

/// Loaders of 64-bit programs, by preference. Debian's `wine64` puts it on no path.
pub(crate) const WINE_LOADERS: &[&str] = &["wine64", "/usr/lib/wine/wine64", "wine"];

/// The server process that the programs of one folder share.
pub(crate) const WINE_SERVERS: &[&str] = &["wineserver64", "/usr/lib/wine/wineserver64", "wineserver"];

/// Checks that these packages of `.ci/packages` are there, and installs those that are not.
///
/// # Errors
/// Packages that cannot be installed; the error has the command for it. A name that the list lacks.
pub(crate) fn require(needs: &[&'static str]) -> Result<()> {
    let missing = missing(needs)?;
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    println!("missing: {}", missing.join(" "));
    let Some(prefix) = privilege() else {
        bail!("these Debian packages are missing and this user may not install them; run `sudo {by_hand}`");
    };
    // The package lists of a fresh image are empty or old.
    let install = ["install", "--yes", "--no-install-recommends"].iter().chain(&missing);
    let done = apt(&prefix, &["update", "--quiet"]) && apt(&prefix, &install.copied().collect::<Vec<_>>());
    let missing = self::missing(needs)?;
    if !done || !missing.is_empty() {
        bail!("could not install {}: run `{by_hand}` to see the reason", missing.join(" "));
    }
    Ok(())
}

fn missing(needs: &[&'static str]) -> Result<Vec<&'static str>> {
    let mut missing = Vec::new();
    for package in needs {
        if !is_present(sign(package).with_context(|| format!(".ci/packages has no package {package}"))?) {
            missing.push(*package);
        }
    }
    Ok(missing)
}

/// The sign of a package in the list.
fn sign(package: &str) -> Option<&'static str> {
    LIST.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let (name, sign) = line.split_once(' ')?;
        (name.trim_start_matches('~') == package).then_some(sign.trim())
    })
}

/// Whether a sign is there, as `.ci/install` decides it.
fn is_present(sign: &str) -> bool {
    if sign.contains(' ') {
        return quiet(Command::new("bash").args(["-c", sign]));
    }
    if sign.starts_with('/') { Path::new(sign).exists() } else { on_path(sign) }
}

fn on_path(name: &str) -> bool {
    find(&[name]).is_some()
}

/// The first available one of these programs; each is on the path, or a path itself.
pub(crate) fn find(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = names.iter().flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)));
    all.into_iter().find(|program| program.is_file())
}

/// The prefix of a command that needs root; `None` if there is no way.
fn privilege() -> Option<Vec<&'static str>> {
    if !on_path("apt-get") {
        return None;
    }
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(Vec::new());
    }
    quiet(Command::new("sudo").args(["--non-interactive", "true"])).then(|| vec!["sudo", "--non-interactive"])
}

fn apt(prefix: &[&str], arguments: &[&str]) -> bool {
    let words: Vec<&str> = prefix.iter().copied().chain(["apt-get"]).chain(arguments.iter().copied()).collect();
    println!("$ {}", words.join(" "));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    command.status().is_ok_and(|status| status.success())
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_of_a_task_has_a_sign() {
        let tasks = [
            OMNIORB,
            OMNI_EVENTS,
            JACORB,
            ETCD,
            TANGO,
            ACE,
            CPP,
            POSIX_SERVERS,
            RPC,
            ASIO,
            JAVA,
            TCL,
            CAPTURING,
            NAMESPACES,
            CERTIFICATES,
            IDL,
            RECORDING,
            BIG_ENDIAN,
            WINDOWS,
        ];
        for package in tasks.concat() {
            assert!(sign(package).is_some_and(|sign| !sign.is_empty()), "{package}");
        }
        assert_eq!(
            missing(&["no-such-package"]).unwrap_err().to_string(),
            ".ci/packages has no package no-such-package"
        );
    }

    #[test]
    fn signs_are_programs_files_and_commands() {
        for (sign, is_there) in [("sh", true), ("no-such-program", false), ("/bin", true), ("/no/such/file", false)] {
            assert_eq!(is_present(sign), is_there, "{sign}");
        }
        assert!(is_present("test -e /bin") && !is_present("test -e /no/such/file"));
        assert_eq!((sign("etcd-server"), sign("#"), sign("")), (Some("etcd"), None, None));
    }
}
