//! Compiles the interfaces of the experiments.

use std::path::PathBuf;

use spandrel_build::configure;

fn main() -> Result<(), spandrel_build::Error> {
    configure().compile(&["idl/ttcp.idl", "idl/latency.idl"])?;
    let engines = ["idl/marshal.idl", "idl/footprint/param_test.idl"];
    let plain = configure().asynchronous_client(false);
    plain.clone().compile(&engines)?;
    // The same types by each other engine, in folders of their own.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    for engine in ["interpretive", "adaptive"] {
        plain.clone().marshal(engine).out_dir(out.join(engine)).compile(&engines)?;
    }
    plain.pad_all().out_dir(out.join("padded")).compile(&engines[..1])
}
