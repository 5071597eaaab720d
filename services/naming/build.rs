//! Compiles the IDL of the bootstrap protocol and of the administration.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::compile("idl/Bootstrap.idl")?;
    spandrel_build::compile("idl/NamingAdministration.idl")
}
