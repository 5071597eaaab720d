//! Compiles the interface of images that go in replies.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().asynchronous_client(false).compile(&["idl/pixels.idl"])
}
