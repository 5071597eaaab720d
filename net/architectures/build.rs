//! Sets `cfg(proactor)` if `spandrel-reactor` has a proactor for the target: by the same condition.

use std::env;

/// Architectures supported by the crate `io-uring`.
const MACHINES: [&str; 5] = ["x86_64", "aarch64", "riscv64", "loongarch64", "powerpc64"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(proactor)");
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let has_io_uring = target("OS") == "linux" && MACHINES.contains(&target("ARCH").as_str());
    if has_io_uring || target("OS") == "windows" {
        println!("cargo::rustc-cfg=proactor");
    }
}
