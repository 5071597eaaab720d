//! Compiles the examples' interfaces.

use spandrel_build::{Sides, configure};

fn main() -> Result<(), spandrel_build::Error> {
    // The chapters on the mapping show all of IDL, also what other compilers do not read.
    configure().portability_warnings(false).compile(&[
        "hello/hello.idl",
        "bank/bank.idl",
        "data_stream/data_stream.idl",
        "deadlines/archive.idl",
        "mapping/shared.idl",
        "mapping/chapter.idl",
        "mapping/values.idl",
        "tutorial/exchange.idl",
        "porting/desk.idl",
        "real_time/plant.idl",
    ])?;
    // ANCHOR: library
    configure()
        .include("bank") // the folder of bank.idl
        .external("bank.idl", "::spandrel_examples")
        .compile(&["library/teller.idl"])?;
    // ANCHOR_END: library
    // ANCHOR: bulk
    configure()
        .include("../orb/bulk/idl") // the folder of Bulk.idl
        .external("Bulk.idl", "::spandrel::bulk")
        .compile(&["bulk/gallery.idl"])?;
    // ANCHOR_END: bulk
    configure()
        .include("../orb/bulk/idl")
        .external("Bulk.idl", "::spandrel::bulk")
        .compile(&["../services/imaging/idl/Imaging.idl"])?;
    // Their asynchronous forms are compiled with them, and give no warning either.
    let asynchronous = configure().portability_warnings(false).asynchronous_server(true).ami(true);
    asynchronous.compile(&["mapping/mapping.idl", "mapping/office.idl", "asynchronous/weather.idl"])?;
    asynchronous.servant_defaults().compile(&["mapping/corners.idl"])?;
    configure().pad_all().compile(&["mapping/padded.idl"])?;
    // Files that include each other in a circle: in one call, and a module for each.
    let shop = ["mapping/shop/counter.idl", "mapping/shop/orders.idl", "mapping/shop/customers.idl"];
    configure().compile(&shop)?;
    let modules = std::path::Path::new(&std::env::var("OUT_DIR").unwrap_or_default()).join("modules");
    let each = configure()
        .out_dir(modules)
        .external("counter.idl", "crate::several_files::modules::counter")
        .external("orders.idl", "crate::several_files::modules::orders")
        .external("customers.idl", "crate::several_files::modules::customers");
    shop.iter().try_for_each(|file| each.compile(&[file]))?;
    let settings = configure().external("shared.idl", "crate::settings::shared").prefix("house");
    settings.clone().ties().servant_defaults().per_module().compile(&["mapping/settings.idl"])?;
    let client = std::path::Path::new(&std::env::var("OUT_DIR").unwrap_or_default()).join("client");
    settings.sides(Sides::Client).out_dir(client).compile(&["mapping/settings.idl"])
}
