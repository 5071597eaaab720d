//! Compiles the IDL of the Orchestrator.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::compile("idl/orchestra.idl")
}
