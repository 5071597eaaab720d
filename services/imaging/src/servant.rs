//! The servant of `Imaging::Store`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use spandrel::authorization::PathCheck;
use spandrel::bulk::bulk::Offer;
use spandrel::bulk::{BulkError, BulkServer, FileSource, OfferedTo, Source};
use spandrel::net::error::excerpt;
use spandrel::net::sync::{Arc, Semaphore};
use spandrel::{CompletionStatus, SystemException};
use spandrel_daemon::caller;
use wildmatch::WildMatch;

use crate::catalog::Catalog;
use crate::files::FileKind;
use crate::generated::imaging::store::{DescribeError, DownloadError, FindError, RemoveError, UploadError, ViewError};
use crate::generated::imaging::{
    DataElement, DataElements, Description, NoSuchImage, QueryPart, Refused, RefusedPart, Region, StoreServant,
};
use crate::pyramid::{RegionSource, levels};
use crate::store::ImageRecord;
use crate::upload::Upload;

/// The images that one query examines at most; a further query goes on behind them.
const EXAMINED: usize = 10_000;
/// The images that one query returns at most.
const RETURNED: usize = 1_000;
/// The octets of a collection's name.
const MAX_COLLECTION: usize = 256;
/// The octets of a keyword.
const MAX_KEYWORD: usize = 64;
/// The octets of a value, and of a pattern.
const MAX_VALUE: usize = 256;
/// The attributes by which a query selects.
const MAX_CRITERIA: usize = 8;

/// The images of a store for its clients.
#[derive(Debug)]
pub(crate) struct ImageStore {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) bulk: Arc<BulkServer>,
    pub(crate) examinations: Arc<Semaphore>,
    pub(crate) path_check: Option<PathCheck>,
    /// The number of the next image.
    pub(crate) next: AtomicU64,
}

impl ImageStore {
    fn permit(&self, operation: &str, collection: Option<&str>) -> Result<(), SystemException> {
        self.path_check.as_ref().map_or(Ok(()), |check| check.check(operation, collection))
    }

    /// An image for an operation that the caller may call on it. A caller who may not call the operation on other images
    /// learns no number that is in use.
    fn image<E>(&self, operation: &str, image: u64) -> Result<Arc<ImageRecord>, E>
    where
        E: From<SystemException> + From<NoSuchImage>,
    {
        match self.catalog.image(image) {
            Some(record) => {
                self.permit(operation, Some(&record.description.collection))?;
                Ok(record)
            }
            None => {
                self.permit(operation, None)?;
                Err(NoSuchImage { image }.into())
            }
        }
    }

    fn offer(&self, source: impl Source + 'static) -> Result<Offer, SystemException> {
        let offered = self.bulk.offer_source(source, &OfferedTo::Caller);
        Ok(offered.map_err(busy)?.0)
    }

    /// Opens a file of an image, which may have been removed in the meantime. A file that was cut or replaced by another kind
    /// of file is not sent.
    fn open<E>(&self, record: &ImageRecord, kind: FileKind) -> Result<FileSource, E>
    where
        E: From<SystemException> + From<NoSuchImage>,
    {
        let (image, expected) = (record.description.image, record.octets_of(kind));
        let opened = FileSource::open(self.catalog.files.path(image, kind));
        let reason = match opened.map(|file| (file.length(), file)) {
            Ok((Some(length), file)) if length == expected => return Ok(file),
            Ok((length, _)) => format!("it has {} octets, and {expected} are recorded", length.unwrap_or_default()),
            Err(error) => error.to_string(),
        };
        if self.catalog.image(image).is_none() {
            return Err(NoSuchImage { image }.into());
        }
        tracing::error!(image, reason, "a file of an image is damaged");
        let detail = move || format!("a file of image {image} cannot be read: {reason}");
        Err(SystemException::persist_store(0, CompletionStatus::No).with_detail(detail).into())
    }
}

impl StoreServant for ImageStore {
    fn find(
        &self,
        collection: &str,
        criteria: &DataElements,
        after: u64,
        how_many: u32,
    ) -> Result<QueryPart, FindError> {
        self.permit("find", Some(collection))?;
        require_collection(collection)?;
        if criteria.len() > MAX_CRITERIA {
            return Err(refuse(RefusedPart::BadElements, format!("at most {MAX_CRITERIA} attributes select images")));
        }
        let selected = criteria.iter().map(|criterion| {
            require_element(criterion)?;
            let pattern = if criterion.value.is_empty() { "*" } else { &criterion.value };
            Ok((&*criterion.keyword, WildMatch::new(pattern)))
        });
        let criteria = selected.collect::<Result<Vec<_>, Refused>>()?;
        let limit = usize::try_from(how_many).unwrap_or(RETURNED).min(RETURNED);
        let examined = self.catalog.images_after(after, EXAMINED);
        let mut part = QueryPart { is_last: examined.len() < EXAMINED, last_examined: after, ..QueryPart::default() };
        // Each collection is decided about once.
        let mut permitted = BTreeMap::from([(collection.to_owned(), true)]);
        let mut images = Vec::new();
        for record in &examined {
            let Description { image, collection: other, about, .. } = &record.description;
            if is_within(other, collection)
                && matches(about, &criteria)
                && *permitted.entry(other.clone()).or_insert_with(|| self.permit("find", Some(other)).is_ok())
            {
                if images.len() == limit {
                    part.is_last = false;
                    break;
                }
                images.push(*image);
            }
            part.last_examined = *image;
        }
        part.images = images.try_into().unwrap_or_default(); // its bound is that of the loop
        Ok(part)
    }

    fn describe(&self, image: u64) -> Result<Description, DescribeError> {
        Ok(self.image::<DescribeError>("describe", image)?.description.clone())
    }

    fn upload(&self, collection: &str, about: &DataElements, length: u64) -> Result<(u64, Offer), UploadError> {
        self.permit("upload", Some(collection))?;
        require_collection(collection)?;
        let mut keywords = BTreeSet::new();
        for element in about.iter() {
            require_element(element)?;
            if !keywords.insert(&element.keyword) {
                let reason = format!("the element {} stands twice", excerpt(&element.keyword));
                return Err(refuse(RefusedPart::BadElements, reason));
            }
        }
        let most = self.catalog.limits.file;
        if length == 0 || length > most {
            let reason = format!("the file has {length} octets: 1 to {most} are accepted");
            return Err(refuse(RefusedPart::BadLength, reason));
        }
        let owner = caller().unwrap_or_default();
        self.catalog.require_room(&owner)?;
        let image = self.next.fetch_add(1, Ordering::Relaxed);
        self.catalog.reserve(image + 1).map_err(SystemException::from)?;
        let description = Description {
            image,
            collection: collection.to_owned(),
            about: about.clone(),
            length,
            ..Description::default()
        };
        let upload = Upload::new(&self.catalog, &self.examinations, ImageRecord { description, owner });
        let (destination, _) = self.bulk.offer_sink(upload, &OfferedTo::Caller).map_err(busy)?;
        Ok((image, destination))
    }

    fn download(&self, image: u64) -> Result<Offer, DownloadError> {
        let record = self.image::<DownloadError>("download", image)?;
        let file = self.open::<DownloadError>(&record, FileKind::Original)?;
        Ok(self.offer(file.with_checksum(record.description.checksum))?)
    }

    fn view(&self, image: u64, zoom_level: u16, area: &Region) -> Result<Offer, ViewError> {
        let record = self.image::<ViewError>("view", image)?;
        let region = |reason: String| refuse(RefusedPart::BadRegion, reason);
        let zoom = &record.description.zoom;
        let levels = zoom.first().map(|whole| levels(whole.columns, whole.rows, record.format())).unwrap_or_default();
        let Some(level) = levels.get(usize::from(zoom_level)) else {
            return Err(region(format!("there is no zoom level {zoom_level}: the image has {}", levels.len())));
        };
        let is_inside = |begin: u32, length: u32, end: u32| {
            length > 0 && begin.checked_add(length).is_some_and(|region_end| region_end <= end)
        };
        if !is_inside(area.column, area.columns, level.columns) || !is_inside(area.row, area.rows, level.rows) {
            let (columns, rows) = (level.columns, level.rows);
            return Err(region(format!("the region is empty, or not within {columns} columns and {rows} rows")));
        }
        let octets = u64::from(area.columns) * u64::from(area.rows) * record.format().octets();
        let most = self.catalog.limits.region;
        if octets > most {
            return Err(region(format!("the region has {octets} octets: at most {most} (use a higher zoom level)")));
        }
        let tiles = self.open::<ViewError>(&record, FileKind::Tiles)?;
        Ok(self.offer(RegionSource::new(tiles, *level, *area))?)
    }

    fn remove(&self, image: u64) -> Result<(), RemoveError> {
        self.image::<RemoveError>("remove", image)?;
        match self.catalog.remove(image).map_err(SystemException::from)? {
            true => Ok(()),
            false => Err(NoSuchImage { image }.into()),
        }
    }
}

fn refuse<E: From<Refused>>(refused_part: RefusedPart, reason: String) -> E {
    Refused { refused_part, reason }.into()
}

/// There are too many transfers, or one could not be offered.
fn busy(error: BulkError) -> SystemException {
    let detail = move || error.to_string();
    SystemException::transient(0, CompletionStatus::No).with_detail(detail)
}

/// Requires the name of a collection: plain words, separated by `/`.
fn require_collection(collection: &str) -> Result<(), Refused> {
    let is_plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
            && !word.chars().all(|letter| letter == '.')
    };
    if collection.len() <= MAX_COLLECTION && collection.split('/').all(is_plain) {
        return Ok(());
    }
    let reason = format!(
        "invalid name `{}` of a collection: expected words of letters, digits, `.`, `-` and `_`, with `/` between them",
        excerpt(collection)
    );
    Err(Refused { refused_part: RefusedPart::BadCollection, reason })
}

fn require_element(element: &DataElement) -> Result<(), Refused> {
    let DataElement { keyword, value } = element;
    let is_keyword = (1..=MAX_KEYWORD).contains(&keyword.len()) && keyword.chars().all(|c| c.is_ascii_alphanumeric());
    let reason = if !is_keyword {
        format!("invalid keyword `{}`: expected 1 to {MAX_KEYWORD} letters and digits", excerpt(keyword))
    } else if value.len() > MAX_VALUE {
        format!("the value of {keyword} has {} octets: at most {MAX_VALUE} are accepted", value.len())
    } else {
        return Ok(());
    };
    Err(Refused { refused_part: RefusedPart::BadElements, reason })
}

/// Whether a collection is another one, or below it.
fn is_within(collection: &str, outer: &str) -> bool {
    collection.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn matches(about: &DataElements, criteria: &[(&str, WildMatch)]) -> bool {
    criteria.iter().all(|(keyword, pattern)| {
        let element = about.iter().find(|element| element.keyword == *keyword);
        element.is_some_and(|element| pattern.matches(&element.value))
    })
}
