//! Compiles the IDL of the tests.

use std::{env, fs, path::Path};

use spandrel_build::Collocation;

fn main() {
    if let Err(error) = compile() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn compile() -> Result<(), spandrel_build::Error> {
    let probe = spandrel_build::configure().asynchronous_server(true).ami(true).collocation(Collocation::Direct);
    probe.compile(&["idl/probe.idl", "idl/naming.idl", "idl/access.idl", "idl/corba.idl"])?;
    for (name, engine, strategy) in [
        ("compiled", "compiled", Collocation::ThroughPoa),
        ("interpretive", "interpretive", Collocation::ThroughPoa),
        ("adaptive", "adaptive", Collocation::ThroughPoa),
        ("direct", "compiled", Collocation::Direct),
        ("direct_interpretive", "interpretive", Collocation::Direct),
    ] {
        let folder = Path::new(&env::var_os("OUT_DIR").expect("Cargo sets it")).join(name);
        fs::create_dir_all(&folder).expect("the folder is ours");
        let chosen = spandrel_build::configure().marshal(engine).collocation(strategy);
        chosen.out_dir(folder).compile(&["idl/engines.idl"])?;
    }
    Ok(())
}
