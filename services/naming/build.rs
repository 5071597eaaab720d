//! Compiles the IDL of the bootstrap protocol.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::compile("idl/Bootstrap.idl")
}
