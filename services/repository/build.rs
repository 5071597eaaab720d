//! Compiles the records of the store, and the servant traits and skeletons of definitions.

use spandrel_build::Sides;

fn main() -> Result<(), spandrel_build::Error> {
    let build = spandrel_build::configure().asynchronous_client(false);
    build.clone().sides(Sides::Client).compile(&["idl/records.idl"])?;
    build.sides(Sides::Server).compile(&["idl/InterfaceRepository.idl"])
}
