//! Transfers images: `bulk-client REFERENCE get NAME FILE`, or `put NAME FILE`. `offer NAME` prints the endpoints and the
//! token of an image, for `fetch.py`.

use std::time::Duration;

use spandrel::Orb;
use spandrel::bulk::{BulkClient, FileSink, FileSource};

spandrel::include_idl!("gallery");
use gallery::Images;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [reference, command, name, rest @ ..] = &args[..] else {
        return Err("usage: bulk-client REFERENCE …".into());
    };
    let orb = Orb::init(rest.iter().skip(1).cloned())?;
    let images: Images = orb.string_to_object(reference)?.narrow()?;
    let client = BulkClient::default()
        .time_limit(Duration::from_secs(600))
        .listen("127.0.0.1:0".parse()?) // if no endpoint of the server can be reached
        .on_progress(|octets| eprint!("\r{octets} octets "));
    match (&**command, rest.first()) {
        ("get", Some(file)) => {
            let outcome = client.receive(&images.fetch(name)?, &mut FileSink::create(file)?)?;
            println!("\n{} octets, {:08x}, {:?}", outcome.octets, outcome.checksum, outcome.route);
        }
        ("put", Some(file)) => {
            let outcome = client.send(&images.store(name)?, &FileSource::open(file)?)?;
            println!("\n{} octets, {:08x}, {:?}", outcome.octets, outcome.checksum, outcome.route);
        }
        ("offer", None) => {
            let offer = images.fetch(name)?;
            let token: String = offer.secret.iter().map(|octet| format!("{octet:02x}")).collect();
            println!("{} {token}", offer.at.join(" "));
        }
        _ => return Err("usage: bulk-client REFERENCE get|put NAME FILE".into()),
    }
    Ok(orb.shutdown()?)
}
