//! A client of an image store: `imaging-client URL put COLLECTION FILE [KEYWORD=VALUE…]`, `find COLLECTION [KEYWORD=PATTERN…]`,
//! `view IMAGE LEVEL PICTURE`, `get IMAGE FILE` or `remove IMAGE`.

use std::fs;

use spandrel::Orb;
use spandrel::bulk::{BulkClient, FileSink, FileSource};

spandrel::include_idl!("Imaging");
use imaging::{DataElement, DataElements, Region, Store};

/// The data elements of words such as `Modality=CT`.
fn elements(words: &[String]) -> Result<DataElements, Box<dyn std::error::Error>> {
    let element = |word: &String| {
        let (keyword, value) = word.split_once('=').ok_or("expected KEYWORD=VALUE")?;
        Ok(DataElement { keyword: keyword.to_owned(), value: value.to_owned() })
    };
    let elements: Result<Vec<DataElement>, Box<dyn std::error::Error>> = words.iter().map(element).collect();
    Ok(elements?.try_into().map_err(|_| "too many data elements")?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let orb = Orb::init([])?;
    let url = *words.first().ok_or("usage: imaging-client URL put|find|view|get|remove …")?;
    let store: Store = orb.string_to_object(url)?.narrow()?;
    let bulk = BulkClient::default();
    // ANCHOR: operations
    match &words[1..] {
        ["put", collection, file, ..] => {
            let length = fs::metadata(file)?.len();
            let (image, destination) = store.upload(collection, &elements(&args[4..])?, length)?;
            bulk.send(&destination, &FileSource::open(file)?)?; // the image exists when this returns
            println!("image {image}");
        }
        ["find", collection, ..] => {
            let mut after = 0;
            loop {
                let part = store.find(collection, &elements(&args[3..])?, after, 100)?;
                for image in part.images.iter() {
                    let about = store.describe(*image)?;
                    let whole = about.zoom[0];
                    println!("image {image}: {} × {}, {} zoom levels", whole.columns, whole.rows, about.zoom.len());
                }
                if part.is_last {
                    break;
                }
                after = part.last_examined;
            }
        }
        ["view", image, zoom_level, picture] => {
            let (image, zoom_level): (u64, u16) = (image.parse()?, zoom_level.parse()?);
            let about = store.describe(image)?;
            let level = about.zoom.get(usize::from(zoom_level)).ok_or("the image has no such zoom level")?;
            if about.bits_allocated != 8 {
                return Err("the picture has no place for samples of 16 bits".into());
            }
            let area = Region { columns: level.columns, rows: level.rows, ..Region::default() };
            let mut pixels = Vec::new();
            bulk.receive(&store.view(image, zoom_level, &area)?, &mut pixels)?;
            // PGM and PPM: a line of text, and the samples.
            let (kind, most) = (if about.samples_per_pixel == 1 { "P5" } else { "P6" }, 255);
            let header = format!("{kind} {} {} {most}\n", level.columns, level.rows);
            fs::write(picture, [header.as_bytes(), &pixels].concat())?;
            println!("{} octets of pixels", pixels.len());
        }
        ["get", image, file] => {
            let outcome = bulk.receive(&store.download(image.parse()?)?, &mut FileSink::create(*file)?)?;
            println!("{} octets, verified: {}", outcome.octets, outcome.is_verified);
        }
        ["remove", image] => store.remove(image.parse()?)?,
        _ => return Err("usage: imaging-client URL put|find|view|get|remove …".into()),
    }
    // ANCHOR_END: operations
    Ok(orb.shutdown()?)
}
