//! The trader's state on disk: service types, offers and attributes.

use std::path::Path;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use spandrel::Orb;
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, from_octets, to_octets};
use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::{Policy, Property};
use spandrel::services::cos_trading_repos::service_type_repository::TypeStruct;
use spandrel::types::Ior;
use spandrel_store::{
    Backup, Layout, OpenCause, OpenError, Service, Storage, StoreFailure, StoreFile, StoreFileError, copy_table,
    set_record,
};

use crate::attributes::{AttributeFields, Attributes};
use crate::edit::{Edit, State};
use crate::offer::{ProxyOffer, StoredOffer};

const OFFERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("offers");
const PROXIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("proxies");
const TYPES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("types");
const LINKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("links");
/// `attributes`; `counters`: the numbers of the next offer and the next type, and the random part of offer ids.
const SETTINGS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("settings");
/// The memory for pages, in octets. All records are read once, at the start.
const CACHE: usize = 16 << 20;

static LAYOUT: Layout = Layout { service: Service::Trading, version: 1, create, convert, copy };

fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(OFFERS)?;
    transaction.open_table(TYPES)?;
    transaction.open_table(SETTINGS)?;
    transaction.open_table(LINKS)?;
    transaction.open_table(PROXIES)?;
    Ok(())
}

fn convert(_: &WriteTransaction, _: &Storage) -> Result<(), OpenCause> {
    Err(OpenCause::NoStore("it has no header".to_owned()))
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(OFFERS, reading, copy)?;
    copy_table(TYPES, reading, copy)?;
    copy_table(SETTINGS, reading, copy)?;
    copy_table(LINKS, reading, copy)?;
    copy_table(PROXIES, reading, copy)
}

/// The form of a record: the same on each machine, with all characters.
pub(crate) fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}

/// A failure to open the database of types, offers and links.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened, is damaged, or is that of another service.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record of the database cannot be read.
    #[error(transparent)]
    File(#[from] StoreFileError),
}

/// An offer as a record.
type OfferFields = (String, Ior, Vec<Property>);

/// A proxy offer as a record: the fields of an offer, `if_match_all`, the recipe and the policies.
type ProxyFields = (OfferFields, (bool, String, Vec<Policy>));

/// The counters as a record.
type Counters = (u64, u64, u32);

/// An edit as octets; `None` deletes the record.
enum Record {
    Offer(u64, Option<Vec<u8>>),
    Proxy(u64, Option<Vec<u8>>),
    Type(String, Option<Vec<u8>>),
    Setting(&'static str, Vec<u8>),
    Link(String, Option<Vec<u8>>),
}

/// The database file of a trader.
#[derive(Debug)]
pub(crate) struct Store(StoreFile);

impl Store {
    /// Opens the file, or creates it, and reads the whole state. References are those of the ORB;
    /// without one, they are only verified.
    pub(crate) fn open(storage: Storage, orb: Option<&Orb>) -> Result<(Self, State), StoreError> {
        let form = || match orb {
            Some(orb) => form().binder(orb),
            None => form(),
        };
        let mut file = StoreFile::open(storage, &LAYOUT, CACHE)?;
        type Octets = Vec<u8>;
        type Named = Vec<(String, Octets)>;
        type Numbered = Vec<(u64, Octets)>;
        type Records = (Numbered, Numbered, Named, Named, Option<Octets>, Option<Octets>);
        let (offers, proxies, types, links, attributes, counters): Records = file.read(|reading| {
            let mut offers = Vec::new();
            for record in reading.open_table(OFFERS)?.iter()? {
                let (number, octets) = record?;
                offers.push((number.value(), octets.value().to_vec()));
            }
            let mut proxies = Vec::new();
            for record in reading.open_table(PROXIES)?.iter()? {
                let (number, octets) = record?;
                proxies.push((number.value(), octets.value().to_vec()));
            }
            let mut types = Vec::new();
            for record in reading.open_table(TYPES)?.iter()? {
                let (name, octets) = record?;
                types.push((name.value().to_owned(), octets.value().to_vec()));
            }
            let mut links = Vec::new();
            for record in reading.open_table(LINKS)?.iter()? {
                let (name, octets) = record?;
                links.push((name.value().to_owned(), octets.value().to_vec()));
            }
            let settings = reading.open_table(SETTINGS)?;
            let setting = |name| Ok::<_, redb::Error>(settings.get(name)?.map(|octets| octets.value().to_vec()));
            Ok((offers, proxies, types, links, setting("attributes")?, setting("counters")?))
        })?;
        let damaged = |text: String| file.storage().error(OpenCause::Contents(text));
        let mut state = State::default();
        for (name, octets) in types {
            let service_type: TypeStruct =
                from_octets(&octets, &form()).map_err(|error| damaged(format!("service type {name}: {error}")))?;
            state.types.set(&name, Some(Arc::new(service_type)));
        }
        for (name, octets) in links {
            let fields = from_octets(&octets, &form()).map_err(|error| damaged(format!("link {name}: {error}")))?;
            state.stored_links.push((name, fields));
        }
        let mut names: std::collections::HashMap<String, Arc<str>> = std::collections::HashMap::new();
        for (number, octets) in offers {
            let (service_type, reference, properties): OfferFields =
                from_octets(&octets, &form()).map_err(|error| damaged(format!("offer {number}: {error}")))?;
            let service_type = names.entry(service_type).or_insert_with_key(|name| name.as_str().into());
            let service_type = Arc::clone(service_type);
            let has_supertype = state.types.has_supertype(&service_type);
            let offer = StoredOffer { number, service_type, reference, properties };
            state.offers.set(number, Some(Arc::new(offer)), has_supertype);
        }
        for (number, octets) in proxies {
            let ((service_type, reference, properties), (if_match_all, recipe, policies)): ProxyFields =
                from_octets(&octets, &form()).map_err(|error| damaged(format!("proxy offer {number}: {error}")))?;
            let service_type = names.entry(service_type).or_insert_with_key(|name| name.as_str().into());
            let offer = StoredOffer { number, service_type: Arc::clone(service_type), reference, properties };
            state.proxies.insert(number, Arc::new(ProxyOffer { offer, if_match_all, recipe, policies }));
        }
        if let Some(octets) = attributes {
            let fields: AttributeFields =
                from_octets(&octets, &form()).map_err(|error| damaged(format!("the attributes: {error}")))?;
            state.attributes =
                Attributes::from_fields(fields).ok_or_else(|| damaged("the number of attributes".to_owned()))?;
        }
        if let Some(octets) = counters {
            let counters: Counters =
                from_octets(&octets, &form()).map_err(|error| damaged(format!("the counters: {error}")))?;
            (state.next_offer, state.incarnation, state.instance) = counters;
        }
        Ok((Self(file), state))
    }

    /// Writes edits and the counters. They are durable when this returns.
    pub(crate) fn write(&mut self, edits: &[&Edit], counters: Counters) -> Result<(), StoreFailure> {
        let failed = |error: spandrel::cdr::CdrError| StoreFailure::Unchanged(error.to_string());
        let mut records = vec![Record::Setting("counters", to_octets(&counters, &form()).map_err(failed)?)];
        for edit in edits {
            records.push(match edit {
                Edit::Offer { number, new, .. } => {
                    let octets = new.as_ref().map(|offer| to_octets(&offer_fields(offer), &form()));
                    Record::Offer(*number, octets.transpose().map_err(failed)?)
                }
                Edit::Proxy { number, new, .. } => {
                    let octets = new.as_ref().map(|proxy| {
                        let rest = (proxy.if_match_all, proxy.recipe.clone(), proxy.policies.clone());
                        let fields: ProxyFields = (offer_fields(&proxy.offer), rest);
                        to_octets(&fields, &form())
                    });
                    Record::Proxy(*number, octets.transpose().map_err(failed)?)
                }
                Edit::Type { name, new, .. } => {
                    let octets = new.as_ref().map(|service_type| to_octets(&**service_type, &form()));
                    Record::Type(name.clone(), octets.transpose().map_err(failed)?)
                }
                Edit::Link { name, new } => {
                    let octets = new.as_ref().map(|fields| to_octets(fields, &form()));
                    Record::Link(name.clone(), octets.transpose().map_err(failed)?)
                }
                Edit::Attributes(attributes) => {
                    Record::Setting("attributes", to_octets(&attributes.fields(), &form()).map_err(failed)?)
                }
            });
        }
        let written = self.0.change(|writing| {
            let mut offers = writing.open_table(OFFERS)?;
            let mut proxies = writing.open_table(PROXIES)?;
            let mut types = writing.open_table(TYPES)?;
            let mut settings = writing.open_table(SETTINGS)?;
            let mut links = writing.open_table(LINKS)?;
            for record in &records {
                match record {
                    Record::Offer(number, octets) => set_record(&mut offers, number, octets.as_deref())?,
                    Record::Proxy(number, octets) => set_record(&mut proxies, number, octets.as_deref())?,
                    Record::Type(name, octets) => set_record(&mut types, &**name, octets.as_deref())?,
                    Record::Link(name, octets) => set_record(&mut links, &**name, octets.as_deref())?,
                    Record::Setting(name, octets) => _ = settings.insert(*name, &**octets)?,
                }
            }
            Ok(())
        });
        written.map_err(StoreFailure::from)
    }

    /// Begins a copy of the state in the file.
    pub(crate) fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        self.0.begin_backup()
    }
}

fn offer_fields(offer: &StoredOffer) -> OfferFields {
    (offer.service_type.to_string(), offer.reference.clone(), offer.properties.clone())
}

/// Verifies the store in a file, which is only read, as a service that does not run left it. Returns the number of
/// service types, and that of offers.
///
/// # Errors
/// A file that cannot be read, is in use, is damaged, or is the store of another service or version.
pub fn check_store(file: &Path) -> Result<(usize, usize), StoreError> {
    let (_, state) = Store::open(Storage::read_only(file), None)?;
    Ok((state.types.len(), state.offers.len()))
}
