//! Compiles the suite's IDL for the marshaling engine named by `SPANDREL_INTEROP_MARSHAL`.

use std::env;

fn main() -> Result<(), spandrel_build::Error> {
    println!("cargo:rerun-if-env-changed=SPANDREL_INTEROP_MARSHAL");
    let engine = env::var("SPANDREL_INTEROP_MARSHAL").unwrap_or_else(|_| "compiled".to_owned());
    let settings = spandrel_build::configure().marshal(&engine);
    settings.compile(&[
        "idl/interop.idl",
        "idl/values.idl",
        "idl/naming.idl",
        "idl/features.idl",
        "idl/callbacks.idl",
    ])?;
    // It includes values.idl, and has definitions of its own for all of these types.
    settings.compile(&["idl/more_values.idl"])?;
    settings.ami(true).compile(&["idl/anything.idl"])
}
