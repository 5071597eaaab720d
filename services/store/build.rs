//! Compiles the IDL of the administration.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::compile("idl/StoreAdministration.idl")
}
