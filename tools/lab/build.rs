//! Compiles the interfaces of the experiments.

use std::path::PathBuf;

use spandrel_build::{Builder, Collocation, configure};

fn main() -> Result<(), spandrel_build::Error> {
    let all = ["idl/ttcp.idl", "idl/latency.idl", "idl/marshal.idl", "idl/footprint/param_test.idl"];
    let plain = configure().asynchronous_client(false);
    // Each on its own, since they have equal names at the top level.
    let compile_each = |settings: &Builder, files: &[&str]| files.iter().try_for_each(|file| settings.compile(&[file]));
    compile_each(&plain, &all)?;
    plain.clone().compile(&["idl/demux.idl"])?;
    configure().compile(&["idl/soak.idl"])?;
    configure().asynchronous_server(true).compile(&["idl/growth.idl"])?;
    // The same interfaces by each other engine, in separate folders.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    for engine in ["interpretive", "adaptive"] {
        compile_each(&plain.clone().marshal(engine).out_dir(out.join(engine)), &all)?;
    }
    plain.clone().collocation(Collocation::Direct).out_dir(out.join("direct")).compile(&["idl/collocation.idl"])?;
    compile_each(&plain.pad_all().out_dir(out.join("padded")), &all[..3])
}
