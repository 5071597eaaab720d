//! Compiles the interfaces that the tests call.

use std::{env, fs, path::Path};

fn main() {
    if let Err(error) = compile() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn compile() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().asynchronous_server(true).ami(true).compile(&["idl/probe.idl", "idl/naming.idl"])?;
    for engine in ["compiled", "interpretive", "adaptive"] {
        let folder = Path::new(&env::var_os("OUT_DIR").expect("Cargo sets it")).join(engine);
        fs::create_dir_all(&folder).expect("the folder is ours");
        spandrel_build::configure().marshal(engine).out_dir(folder).compile(&["idl/engines.idl"])?;
    }
    Ok(())
}
