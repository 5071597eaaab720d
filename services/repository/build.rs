//! Compiles the records of the store.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure()
        .sides(spandrel_build::Sides::Client)
        .asynchronous_client(false)
        .compile(&["idl/records.idl"])
}
