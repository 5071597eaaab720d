//! Writes what clients send to standard output: `data-stream-corba-server [MARKER] -ORBInitRef ImplRepoService=URL`.
//!
//! The server of paper 000, figure 17.

use std::error::Error;
use std::io::{self, Write as _};

use spandrel::services::activation::{self, WithActivation as _};
use spandrel::{Orb, Poa};

spandrel::include_idl!("data_stream");
use data_stream::{Disconnected, SendError};

struct Output;

impl DataStreamServant for Output {
    fn send(&self, buf: &[u8]) -> Result<(), SendError> {
        let mut output = io::stdout().lock();
        output.write_all(buf).and_then(|()| output.flush()).map_err(|_| Disconnected {})?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let orb = Orb::builder().activation()?.take_args(&mut arguments)?.build()?;
    let marker = arguments.first().map_or("data_stream", |marker| marker);
    let streams = Poa::root(&orb)?.child("streams").persistent().user_ids().create()?;
    let stream: DataStream = streams.serve_with_id(marker, Output)?;
    let _running = activation::activate_service(&orb, "Data_Stream", marker, stream.as_object(), "data-stream")?;
    eprintln!("ready");
    Ok(orb.run_until_signal()?)
}
