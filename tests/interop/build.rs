//! Compiles the suite's IDL.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::compile("idl/interop.idl")
}
