//! Sends its standard input to a server by calls: `data-stream-corba-client [MARKER] -ORBInitRef ImplRepoService=URL`.
//!
//! The client of paper 000, figure 16.

use std::error::Error;
use std::io::{self, Read as _};

use spandrel::Orb;
use spandrel::services::activation;

spandrel::include_idl!("data_stream");

fn send(stream: &DataStream) -> Result<(), Box<dyn Error>> {
    let mut buffer = vec![0; 8 << 10];
    loop {
        let count = io::stdin().read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        stream.send(&buffer[..count])?;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let orb = Orb::builder().take_args(&mut arguments)?.build()?;
    let marker = arguments.first().map_or("data_stream", |marker| marker);
    send(&activation::bind(&orb, "Data_Stream", marker)?.unchecked_narrow())?;
    Ok(orb.shutdown()?)
}
