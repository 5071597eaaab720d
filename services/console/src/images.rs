//! Images of an image store, and the pixels of their zoom levels.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use spandrel::Orb;
use spandrel::bulk::BulkClient;
use spandrel_imaging::STORE_KEY;
use spandrel_imaging::imaging::store::{DescribeError, FindError, ViewError};
use spandrel_imaging::imaging::{DataElements, Description, Region, Store};
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};
use crate::names::for_caller;

/// The interface that rules name.
const INTERFACE: &str = "IDL:spandrel/Imaging/Store:1.0";
/// The most images of one page.
const MAX_IMAGES: u32 = 50;
/// The columns and rows of a tile.
const TILE: u32 = 256;

/// A tile of a zoom level.
#[derive(Debug, Deserialize)]
pub(crate) struct Tile {
    image: u64,
    level: u16,
    /// The tiles to its left.
    across: u32,
    /// The tiles above it.
    down: u32,
}

/// The store of the ORB's initial references.
fn store(orb: &Orb) -> Result<Store, Problem> {
    if !orb.has_initial_reference(STORE_KEY) {
        let title = "this process knows no image store";
        let detail = "start it with --orb '-ORBInitRef ImageStore=URL'";
        return Err(Problem::new(StatusCode::NOT_FOUND, title).detail(detail));
    }
    let object = orb.resolve_initial_references(STORE_KEY).map_err(|exception| failed(&exception))?;
    Ok(for_caller(&object)?.unchecked_narrow())
}

/// Images of a collection, and of those below it, with numbers above `after`:
/// `{"images":[{"image","collection","elements","samples","bits","zoom":[[columns,rows]]}],"last","truncated"}`.
pub(crate) fn list(permissions: &Permissions, orb: &Orb, collection: &str, after: u64) -> Result<Value, Problem> {
    permissions.check("find", INTERFACE, Some(collection))?;
    let store = store(orb)?;
    let part = store.find(collection, &DataElements::default(), after, MAX_IMAGES).map_err(|error| match error {
        FindError::Refused(refused) => invalid(refused.reason),
        FindError::System(exception) => failed(&exception),
    })?;
    let mut images = Vec::new();
    for image in part.images.iter() {
        match store.describe(*image) {
            // The policy decides about the image's own collection, too.
            Ok(it) if permissions.check("describe", INTERFACE, Some(&it.collection)).is_ok() => {
                images.push(described(&it));
            }
            Ok(_) | Err(DescribeError::NoSuchImage(_)) => {}
            Err(DescribeError::System(exception)) => return Err(failed(&exception)),
        }
    }
    Ok(json!({ "images": images, "last": part.last_examined, "truncated": !part.is_last }))
}

fn described(it: &Description) -> Value {
    let elements = it.about.iter().map(|element| (element.keyword.clone(), json!(element.value)));
    let zoom: Vec<[u32; 2]> = it.zoom.iter().map(|level| [level.columns, level.rows]).collect();
    json!({
        "image": it.image,
        "collection": it.collection,
        "elements": elements.collect::<Map<_, _>>(),
        "samples": it.samples_per_pixel,
        "bits": it.bits_allocated,
        "zoom": zoom,
    })
}

/// The pixels of a tile, row by row.
pub(crate) fn tile(permissions: &Permissions, orb: &Orb, tile: &Tile) -> Result<Vec<u8>, Problem> {
    let store = store(orb)?;
    let missing = || Problem::new(StatusCode::NOT_FOUND, "there is no such tile of an image");
    let description = store.describe(tile.image).map_err(|error| match error {
        DescribeError::NoSuchImage(_) => missing(),
        DescribeError::System(exception) => failed(&exception),
    })?;
    permissions.check("view", INTERFACE, Some(&description.collection))?;
    let level = description.zoom.get(usize::from(tile.level)).ok_or_else(missing)?;
    let (column, row) = (tile.across.saturating_mul(TILE), tile.down.saturating_mul(TILE));
    if column >= level.columns || row >= level.rows {
        return Err(missing());
    }
    let area = Region { column, row, columns: TILE.min(level.columns - column), rows: TILE.min(level.rows - row) };
    let offer = store.view(tile.image, tile.level, &area).map_err(|error| match error {
        ViewError::NoSuchImage(_) => missing(),
        ViewError::Refused(refused) => invalid(refused.reason),
        ViewError::System(exception) => failed(&exception),
    })?;
    let mut pixels = Vec::new();
    let received = BulkClient::default().time_limit(CALL_TIMEOUT).receive(&offer, &mut pixels);
    received.map_err(|error| {
        let title = "the pixels cannot be received";
        Problem::new(StatusCode::BAD_GATEWAY, title).detail(error.to_string())
    })?;
    Ok(pixels)
}
