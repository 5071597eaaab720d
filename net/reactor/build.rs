//! Sets `cfg(io_uring)` if the target can have an io_uring, by the condition of the dependency in `Cargo.toml`; and
//! `cfg(proactor)` if it has a proactor: over an io_uring, or over the completion ports of Windows.

use std::env;

/// Architectures supported by the crate `io-uring`.
const MACHINES: [&str; 5] = ["x86_64", "aarch64", "riscv64", "loongarch64", "powerpc64"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(io_uring, proactor)");
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let has_io_uring = target("OS") == "linux" && MACHINES.contains(&target("ARCH").as_str());
    if has_io_uring {
        println!("cargo::rustc-cfg=io_uring");
    }
    if has_io_uring || target("OS") == "windows" {
        println!("cargo::rustc-cfg=proactor");
    }
}
