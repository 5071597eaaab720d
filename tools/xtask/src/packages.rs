//! Programs and libraries of Debian packages: detected, installed where that is permitted, otherwise named.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// A requirement of a task, and the package that has it.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    requirement: Requirement,
    package: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Requirement {
    Program(&'static str),
    OneOf(&'static [&'static str]),
    Library(&'static str),
    Folder(&'static str),
}

const fn program(name: &'static str, package: &'static str) -> Need {
    Need { requirement: Requirement::Program(name), package }
}

/// Tools that build and run the omniORB peers.
pub const OMNIORB: &[Need] = &[
    program("g++", "g++"),
    program("make", "make"),
    program("pkg-config", "pkg-config"),
    program("omniidl", "omniidl"),
    program("omniNames", "omniorb-nameserver"),
    Need { requirement: Requirement::Library("omniORB4"), package: "libomniorb4-dev" },
    Need { requirement: Requirement::Folder("/usr/share/idl/omniORB"), package: "omniorb-idl" },
];

/// Tools that build and run the JacORB peers; Maven downloads JacORB itself.
pub const JACORB: &[Need] = &[program("javac", "openjdk-17-jdk-headless"), program("mvn", "maven")];

/// The cluster of the naming service over etcd, and the compiler that its client needs.
pub const ETCD: &[Need] = &[
    program("etcd", "etcd-server"),
    program("protoc", "protobuf-compiler"),
    Need { requirement: Requirement::Folder("/usr/include/google/protobuf"), package: "libprotobuf-dev" },
];

/// A device server of the TANGO control system.
pub const TANGO: &[Need] = &[program("/usr/lib/tango/TangoTest", "tango-test")];

/// The library and the tools that build the programs over ACE.
pub const ACE: &[Need] = &[
    program("g++", "g++"),
    program("make", "make"),
    Need { requirement: Requirement::Folder("/usr/include/ace"), package: "libace-dev" },
];

/// The tools that build programs in C++ without libraries.
pub const CPP: &[Need] = &[program("g++", "g++"), program("make", "make")];

/// The compiler and the library that build the servers over POSIX calls.
pub const POSIX_SERVERS: &[Need] = &[
    program("gcc", "gcc"),
    program("make", "make"),
    Need { requirement: Requirement::Folder("/usr/include/liburing"), package: "liburing-dev" },
];

/// The library and the tools that build the programs over Asio.
pub const ASIO: &[Need] = &[
    program("g++", "g++"),
    program("make", "make"),
    Need { requirement: Requirement::Folder("/usr/include/asio"), package: "libasio-dev" },
];

/// Tools that build and run programs in Java without libraries.
pub const JAVA: &[Need] = &[program("javac", "openjdk-17-jdk-headless"), program("make", "make")];

/// The interpreter of Tcl, and its extension that handles signals.
pub const TCL: &[Need] = &[
    program("tclsh", "tcl"),
    program("make", "make"),
    Need { requirement: Requirement::Folder("/usr/lib/tclx8.4"), package: "tclx8.4" },
];

/// Programs that capture traffic and dissect it.
pub const CAPTURING: &[Need] = &[
    program("tshark", "tshark"),
    program("dumpcap", "wireshark-common"),
    program("unshare", "util-linux"),
    program("ip", "iproute2"),
];

/// Programs that make network namespaces and enter them.
pub const NAMESPACES: &[Need] =
    &[program("ip", "iproute2"), program("nsenter", "util-linux"), program("sysctl", "procps")];

/// The program that makes certificates; the one for Java comes with Java.
pub const CERTIFICATES: &[Need] = &[program("openssl", "openssl")];

/// The other compiler, and the IDL files, for the comparison of IDL compilers.
pub const IDL: &[Need] = &[
    program("omniidl", "omniidl"),
    Need { requirement: Requirement::Folder("/usr/share/idl/omniORB/COS"), package: "omniorb-idl" },
    Need { requirement: Requirement::Folder("/usr/lib/omniorb/examples"), package: "omniorb-doc" },
    Need { requirement: Requirement::Folder("/usr/share/idl/omniEvents"), package: "libomnievents-dev" },
    Need { requirement: Requirement::Folder("/usr/share/doc/tcl-combat/examples"), package: "tcl-combat" },
];

/// Further programs that record golden messages.
pub const RECORDING: &[Need] = &[program("python3", "python3"), program("tshark", "tshark")];

/// Tools that build and run programs for a big-endian machine.
pub const BIG_ENDIAN: &[Need] = &[
    program("qemu-s390x", "qemu-user"),
    program("s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu"),
    Need { requirement: Requirement::Folder("/usr/s390x-linux-gnu/include"), package: "libc6-dev-s390x-cross" },
];

/// Tools that build and run the tests for Windows.
pub const WINDOWS: &[Need] = &[
    program("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
    Need { requirement: Requirement::OneOf(WINE_LOADERS), package: "wine64" },
    Need { requirement: Requirement::OneOf(WINE_SERVERS), package: "wine64" },
];

/// Loaders of 64-bit programs, by preference. Debian's `wine64` puts it on no path.
pub const WINE_LOADERS: &[&str] = &["wine64", "/usr/lib/wine/wine64", "wine"];

/// The server process that the programs of one folder share.
pub const WINE_SERVERS: &[&str] = &["wineserver64", "/usr/lib/wine/wineserver64", "wineserver"];

/// Checks that everything is available, and installs missing packages.
pub fn require(needs: &[Need]) -> Result<()> {
    let missing = missing(needs);
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
    let missing = self::missing(needs);
    if !done || !missing.is_empty() {
        bail!("could not install {}: run `{by_hand}` to see the reason", missing.join(" "));
    }
    Ok(())
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    let mut missing: Vec<_> =
        needs.iter().filter(|need| !is_available(need.requirement)).map(|need| need.package).collect();
    missing.dedup();
    missing
}

fn is_available(requirement: Requirement) -> bool {
    match requirement {
        Requirement::Program(name) => on_path(name),
        Requirement::OneOf(names) => find(names).is_some(),
        Requirement::Library(name) => quiet(Command::new("pkg-config").args(["--exists", name])),
        Requirement::Folder(path) => Path::new(path).is_dir(),
    }
}

fn on_path(name: &str) -> bool {
    find(&[name]).is_some()
}

/// The first available one of these programs; each is on the path, or a path itself.
pub fn find(names: &[&str]) -> Option<PathBuf> {
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
