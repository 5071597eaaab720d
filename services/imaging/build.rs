//! Compiles the IDL of the image store.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure()
        .include("../../orb/bulk/idl") // the folder of Bulk.idl
        .external("Bulk.idl", "::spandrel::bulk")
        .compile(&["idl/Imaging.idl"])
}
