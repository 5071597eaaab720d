//! Sets `cfg(io_uring)` if the target can have an io_uring: the condition of `spandrel-reactor`.

use std::env;

/// Architectures supported by the crate `io-uring`.
const MACHINES: [&str; 5] = ["x86_64", "aarch64", "riscv64", "loongarch64", "powerpc64"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(io_uring)");
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && MACHINES.contains(&target("ARCH").as_str()) {
        println!("cargo::rustc-cfg=io_uring");
    }
}
